"""The plan: which rows run in which of the two calls that a machine is lent for, and in what order.

Nothing here runs a row or reads a clock."""
import dataclasses
import math

import page
from rows import TABLE

CALLS = 2
CALL_SECONDS = 300
BEGIN_SECONDS, END_SECONDS = 6, 12   # of a call, without a row
ROOM = CALL_SECONDS - BEGIN_SECONDS - END_SECONDS
AT_ONCE = 5     # rows that say nothing of times, on 16 CPUs


@dataclasses.dataclass(frozen=True)
class Item:
    """A row to place: the seconds that it is expected to take, and where they are from; beside:
    others of this kind may run at the same time."""
    name: str
    seconds: float
    beside: bool = False
    source: str = ""


@dataclasses.dataclass
class Call:
    """Items in the order of what they decide."""
    number: int
    items: list = dataclasses.field(default_factory=list)

    def groups(self):
        """(items, at the same time?) in the order in which they run: those beside others where the
        first of them stands."""
        return groups(self.items)

    def seconds(self, at_once=AT_ONCE):
        return sum(lanes([item.seconds for item in items], at_once if beside else 1)
                   for items, beside in self.groups())


@dataclasses.dataclass
class Plan:
    calls: list
    left_out: list  # (item, why)
    settled: list   # (name, why)

    def items_from(self, number):
        """The items of a call, then those that run if time is left: of later calls, and those that
        were left out."""
        calls = [call.items for call in self.calls if call.number >= number]
        return calls[0], [*(item for items in calls[1:] for item in items),
                          *(item for item, _ in self.left_out)]


def groups(items):
    beside = [item for item in items if item.beside]
    found = [([item], False) if not item.beside else (beside, True)
             for item in items if not item.beside or item is beside[0]]
    return found


def lanes(seconds, count):
    """How long these take, begun in order as lanes get free."""
    ends = [0.0] * count
    for value in seconds:
        ends[ends.index(min(ends))] += value
    return max(ends)


def pack(items, numbers, bound=ROOM, at_once=AT_ONCE):
    """(calls, left out): each item, the most important first, goes into the first of the calls
    with these numbers that has room for it."""
    calls, left_out = [Call(number) for number in numbers], []
    for item in items:
        for call in calls:
            if Call(0, [*call.items, item]).seconds(at_once) <= bound:
                call.items.append(item)
                break
        else:
            rooms = (f"{bound - call.seconds(at_once):.0f} s in call {call.number}"
                     for call in calls)
            left_out.append((item, f"what is before it leaves {' and '.join(rooms)}"))
    return calls, left_out


def newest(entries):
    return max(entries, key=page.when, default=None)


def expected(row, entries):
    """(seconds, where they are from) by what the newest pages say of a row. One that ended badly
    or was cut may take longer."""
    entry = newest(entry for entry in entries
                   if entry["name"] == row.name and entry["seconds"] > 0)
    if entry is None or entry["result"] != "ok":
        return max(row.cost, entry["seconds"] if entry else 0), ""
    return math.ceil(entry["seconds"]), page.of_when(entry)


def settled(row, entries, code):
    """The newest entry that settles the row for this code, or None."""
    return newest(entry for entry in entries
                  if entry["name"] == row.name and page.is_final(entry) and
                  entry.get("code") == code.get(row.name))


def make(old, after, code, numbers=range(1, CALLS + 1)):
    """The plan of the calls with these numbers. old: entries that tell what rows cost; after:
    those that may settle them too; code: the fingerprint of each row."""
    items, done = [], []
    for row in TABLE.values():
        entry = settled(row, after, code)
        if entry is not None:
            done.append((row.name, f"{entry['result']}, {page.of_when(entry)}"))
        else:
            seconds, source = expected(row, [*old, *after])
            items.append(Item(row.name, seconds, row.beside, source))
    return Plan(*pack(items, numbers), done)


def show(item):
    about = f"{'' if item.source else '~'}{item.seconds:.0f} s"
    return f"{item.name:18} {about:>6}"


def text(plan):
    """The plan for people."""
    lines, sources = [], set()
    for call in plan.calls:
        lines += ["", f"call {call.number}: {len(call.items)} rows, about {call.seconds():.0f} s "
                  f"of at most {CALL_SECONDS} s"]
        items = [(item, beside) for group, beside in call.groups() for item in group]
        lines += [f"  {place:2}  {show(item)}  {'beside' if beside else 'alone':8}"
                  f"{TABLE[item.name].decides}" for place, (item, beside) in enumerate(items, 1)]
        sources |= {item.source for item in call.items if item.source}
    if plan.left_out:
        lines += ["", "left out, unless time is left:",
                  *(f"      {show(item)}  {why}" for item, why in plan.left_out)]
    if plan.settled:
        lines += ["", "settled:", *(f"      {name:25}  {why}" for name, why in plan.settled)]
    return "\n".join([f"seconds: as on {'; '.join(sorted(sources)) or 'no page'}; ~: estimated",
                      *lines])
