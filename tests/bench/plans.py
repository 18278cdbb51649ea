"""Plans: what a step allocates, frees and uses, in order, and how long its kernels run.

A plan is a list of acts: ("a", buffer, bytes), ("f", buffer) and ("u", nanoseconds, uses), where
uses are (buffer, written) pairs of one kernel. The program `play` plays one (its format is in
play.c), and the models of spill_model.py work on the same list.
"""
import csv
import traces

TICK_NS = 20000  # computed in a unit of a trace's logical time
SPANS = 0.9      # a buffer that lives for so much of the step spans it
MOST_USES = 8    # of one kernel


def of_trace(file):
    """A buffer is used at `lower`, where it is written, and at `upper` - 1. One that spans the step
    is also used once in its first half, in id order, and once in its second, in reverse."""
    with open(file, newline="") as text:
        rows = [(int(row["lower"]), int(row["upper"]), int(row["size"]))
                for row in csv.DictReader(text)]
    begin, end = min(row[0] for row in rows), max(row[1] for row in rows)
    allocs, frees, uses = {}, {}, {}
    for buffer, (lower, upper, size) in enumerate(rows):
        allocs.setdefault(lower, []).append((buffer, size))
        frees.setdefault(upper, []).append(buffer)
        for time in {lower, upper - 1}:
            uses.setdefault(time, []).append((buffer, time == lower))
    for time, buffer in span_uses(rows, begin, end):
        if all(buffer != used for used, _ in uses.get(time, [])):
            uses.setdefault(time, []).append((buffer, False))
    times = sorted(uses)
    nanoseconds = {time: (later - time) * TICK_NS for time, later in zip(times, times[1:] + [end])}
    plan = []
    for time in sorted(set(allocs) | set(frees) | set(uses)):
        plan += [("f", buffer) for buffer in frees.get(time, [])]
        plan += [("a", buffer, size) for buffer, size in allocs.get(time, [])]
        plan += kernels(nanoseconds.get(time, 0), uses.get(time, []))
    return plan


def span_uses(rows, begin, end):
    """(time, buffer) of the uses that buffers which span the step have beside the two others."""
    spanning = [buffer for buffer, (lower, upper, _) in enumerate(rows)
                if upper - lower >= SPANS * (end - begin)]
    half = (end - begin) // 2
    found = []
    for place, buffer in enumerate(spanning, 1):
        lower, upper, _ = rows[buffer]
        way = place * half // (len(spanning) + 1)
        for time in (begin + way, end - 1 - way):
            found.append((min(max(time, lower), upper - 1), buffer))
    return found


def kernels(nanoseconds, uses):
    """As many kernels as it takes, one after the other."""
    parts = [uses[at:at + MOST_USES] for at in range(0, len(uses), MOST_USES)]
    return [("u", nanoseconds // len(parts), part) for part in parts]


def write(plan, path):
    with open(path, "w") as text:
        for kind, *rest in plan:
            if kind == "u":
                nanoseconds, uses = rest
                written = sum(1 << bit for bit, (_, is_written) in enumerate(uses) if is_written)
                rest = [nanoseconds, written, *(buffer for buffer, _ in uses)]
            print(kind, *rest, file=text)


def rounded(size):
    return -(-size // traces.UNIT) * traces.UNIT


def live_peak(plan):
    """The most bytes live at once, each buffer rounded up to a unit."""
    live = peak = 0
    sizes = {}
    for kind, buffer, *rest in plan:
        if kind == "a":
            sizes[buffer] = rounded(rest[0])
            live += sizes[buffer]
            peak = max(peak, live)
        elif kind == "f":
            live -= sizes.pop(buffer)
    return peak


def compute_ns(plan):
    return sum(act[1] for act in plan if act[0] == "u")
