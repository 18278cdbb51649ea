"""Plans: the allocations, frees and uses of steps, in order, and how long their kernels run.

A plan is a list of acts: ("a", buffer, bytes), ("f", buffer), ("u", nanoseconds, uses), where uses
are (buffer, written) pairs of one kernel, and ("s",) where a step begins. The program `play` plays
plans (its format is in play.c), and the models of spill_model.py work on the same list.
"""
import bisect
import csv
import random

import spill_log
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


LAYERS, WEIGHT, ACTIVATION = 24, 16 << 20, 8 << 20  # bytes
FORWARD_NS = 400000


def of_shapes(steps, seed=1):
    """Training with dynamic shapes: weights that stay, and activations whose sizes differ from step
    to step, like batches padded to their longest sequence. The plan begins and ends with a mark.
    The weights are allocated in the first step."""
    draw = random.Random(seed)
    plan = [("s",), *(("a", layer, WEIGHT) for layer in range(LAYERS))]
    buffer = LAYERS
    for _ in range(steps):
        size = int(ACTIVATION * draw.uniform(0.5, 1)) // 512 * 512
        for layer in range(LAYERS):
            plan += [("a", buffer + layer, size),
                     ("u", FORWARD_NS, [(layer, False), (buffer + layer, True)])]
        for layer in reversed(range(LAYERS)):
            plan += [("u", 2 * FORWARD_NS, [(buffer + layer, False), (layer, True)]),
                     ("f", buffer + layer)]
        plan.append(("s",))
        buffer += LAYERS
    return plan


TRAINED, EVALUATED = 5, 3  # steps of a round, and batches without gradients after them


def of_evaluation(rounds):
    """Training that is evaluated after every few steps, on batches of half the size. The plan
    begins and ends with a mark; an evaluation counts as one step."""
    plan = [("s",), *(("a", layer, WEIGHT) for layer in range(LAYERS))]
    buffer = LAYERS
    for _ in range(rounds):
        for _ in range(TRAINED):
            plan += trained(buffer)
            buffer += LAYERS
        for _ in range(EVALUATED):
            plan += evaluated(buffer)
            buffer += LAYERS
        plan.append(("s",))
    return plan


def trained(buffer):
    """A step whose activations are numbered from `buffer` on."""
    plan = []
    for layer in range(LAYERS):
        plan += [("a", buffer + layer, ACTIVATION),
                 ("u", FORWARD_NS, [(layer, False), (buffer + layer, True)])]
    for layer in reversed(range(LAYERS)):
        plan += [("u", 2 * FORWARD_NS, [(buffer + layer, False), (layer, True)]),
                 ("f", buffer + layer)]
    return plan + [("s",)]


def evaluated(buffer):
    """A batch without gradients: an activation is freed when the next is there."""
    plan = []
    for layer in range(LAYERS):
        uses = [(layer, False), (buffer + layer, True)]
        plan += [("a", buffer + layer, ACTIVATION // 2), ("u", FORWARD_NS, uses)]
        plan += [("f", buffer + layer - 1)] if layer > 0 else []
    return plan + [("f", buffer + LAYERS - 1)]


class Blocks:
    """What is allocated now, by address."""

    def __init__(self):
        self.starts, self.blocks, self.count = [], {}, 0

    def add(self, address, size):
        """The new buffer's number."""
        self.count += 1
        bisect.insort(self.starts, address)
        self.blocks[address] = (self.count, size)
        return self.count

    def remove(self, address):
        """The buffer's number, or None."""
        found = self.blocks.pop(address, None)
        if found is None:
            return None
        self.starts.remove(address)
        return found[0]

    def at(self, address):
        """The buffer that holds the address, or None."""
        place = bisect.bisect_right(self.starts, address) - 1
        if place < 0:
            return None
        buffer, size = self.blocks[self.starts[place]]
        return buffer if address < self.starts[place] + size else None


def of_log(path):
    """The plan of a program that ran without spillway and with simulated time, from the driver's
    log: a use is an argument of a launch that was checked."""
    plan, blocks = [], Blocks()
    program = spill_log.read_program(path)
    for name, details in program.calls:
        if name in ("cuMemAllocAsync", "cuMemAlloc_v2"):
            size = int(details[0].removeprefix("size="))
            address = int(details[details.index("->") + 1], 16)
            plan.append(("a", blocks.add(address, size), size))
        elif name in ("cuMemFreeAsync", "cuMemFree_v2"):
            buffer = blocks.remove(int(details[0], 16))
            plan += [("f", buffer)] if buffer is not None else []
        elif details[0] == "kernel=" + spill_log.MARK:
            plan.append(("s",))
        else:
            item = next(word for word in details if word.startswith("item="))[len("item="):]
            uses = [(blocks.at(address), written) for address, written in
                    program.uses.get(item, [])]
            plan.append(("u", program.took.get(item, 0),
                         [use for use in uses if use[0] is not None]))
    return plan


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
    for kind, *rest in plan:
        if kind == "a":
            sizes[rest[0]] = rounded(rest[1])
            live += sizes[rest[0]]
            peak = max(peak, live)
        elif kind == "f":
            live -= sizes.pop(rest[0])
    return peak


def compute_ns(plan):
    return sum(act[1] for act in plan if act[0] == "u")
