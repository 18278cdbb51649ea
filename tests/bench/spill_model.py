"""What steps take by other ways of living with less memory, on plans (plans.py).

The costs are those of the simulated time (src/sim/driver/exec/timing.h, costs.def). Demand paging
brings in what a kernel uses just before it runs and evicts what its policy says, and the device
waits meanwhile; eviction always writes back. Static placement leaves on the host what does not
fit when it is allocated, and kernels use it over the link.
"""
import collections
import dataclasses
import heapq
import itertools
import math

import plans

LINK = 50.0                      # bytes a nanosecond, each way
LINK_READ, LINK_WRITE = 35.0, 52.8  # of a kernel that uses the host's memory
GRANULE = 2 << 20
MAP_NS, ACCESS_NS, UNMAP_NS, FENCE_NS = 2000, 56000, 30000, 5000
NEVER = math.inf


@dataclasses.dataclass
class Step:
    compute_ns: float = 0
    stall_ns: float = 0  # beyond that
    moves: int = 0       # batches in one direction
    calls: int = 0       # on virtual memory
    in_bytes: int = 0
    out_bytes: int = 0
    link_bytes: int = 0  # used by kernels where they are, on the host

    @property
    def ns(self):
        return self.compute_ns + self.stall_ns

    def move(self, in_bytes, out_bytes):
        """Charges moves in both directions, one after the other."""
        self.in_bytes += in_bytes
        self.out_bytes += out_bytes
        for size in (out_bytes, in_bytes):
            if size > 0:
                granules = -(-size // GRANULE)
                self.moves += 1
                self.calls += 2 * granules + 4
                self.stall_ns += size / LINK + FENCE_NS + 2 * (
                    granules * (MAP_NS + ACCESS_NS + UNMAP_NS))

    def use_over_link(self, size, written):
        self.link_bytes += size
        self.stall_ns += size / (LINK_WRITE if written else LINK_READ)

    def bound_ns(self):
        """If everything moved overlaps with everything else."""
        return max(self.compute_ns, self.in_bytes / LINK, self.out_bytes / LINK)


def next_uses(plan):
    """For each act, for each buffer that it uses, the act that uses it next; NEVER when it is freed
    before."""
    found = [None] * len(plan)
    coming = {}
    for at in range(len(plan) - 1, -1, -1):
        kind, *rest = plan[at]
        if kind == "u":
            found[at] = {buffer: coming.get(buffer, NEVER) for buffer, _ in rest[1]}
            coming.update(dict.fromkeys(found[at], at))
        elif kind == "a":
            coming.pop(rest[0], None)
    return found


class Pager:
    """Demand paging; the policy gives each use of a buffer a rank, and the highest goes first."""

    def __init__(self, plan, capacity, rank):
        self.plan, self.capacity, self.rank = plan, capacity, rank
        self.sizes, self.resident, self.fresh = {}, {}, set()
        self.used = 0
        self.heap = []  # (-rank, buffer); what is out of date differs from self.resident

    def evict_until(self, room, keep):
        """Makes room; the bytes that leave. Buffers in `keep` stay."""
        out, kept = 0, []
        while self.used + room > self.capacity and self.heap:
            rank, buffer = heapq.heappop(self.heap)
            if self.resident.get(buffer) != -rank:
                continue
            if buffer in keep:
                kept.append((rank, buffer))
                continue
            self.leave(buffer)
            out += self.sizes[buffer]
        for entry in kept:
            heapq.heappush(self.heap, entry)
        return out

    def leave(self, buffer):
        if self.resident.pop(buffer, None) is not None:
            self.used -= self.sizes[buffer]

    def use(self, step, at, uses):
        missing = [buffer for buffer in uses if buffer not in self.resident]
        room = sum(self.sizes[buffer] for buffer in missing)
        out = self.evict_until(room, uses) if missing else 0
        came = 0
        for buffer in missing:
            size = self.sizes[buffer]
            if self.used + size > self.capacity:
                step.use_over_link(size, uses[buffer])
                continue
            self.used += size
            self.resident[buffer] = None
            came += 0 if buffer in self.fresh else size
            self.fresh.discard(buffer)
        step.move(came, out)
        for buffer in uses:
            if buffer in self.resident:
                self.resident[buffer] = self.rank(at, buffer)
                heapq.heappush(self.heap, (-self.resident[buffer], buffer))

    def run(self):
        return run(self.plan, self)

    def alloc(self, buffer, size):
        self.sizes[buffer] = size
        self.fresh.add(buffer)

    def free(self, buffer):
        self.leave(buffer)
        self.fresh.discard(buffer)
        del self.sizes[buffer]


class Static:
    """What fits when it is allocated is on the device, the rest on the host, for good."""

    def __init__(self, plan, capacity):
        self.plan, self.capacity = plan, capacity
        self.device, self.host, self.used = {}, {}, 0

    def use(self, step, _at, uses):
        for buffer, written in uses.items():
            if buffer in self.host:
                step.use_over_link(self.host[buffer], written)

    def alloc(self, buffer, size):
        fits = self.used + size <= self.capacity
        (self.device if fits else self.host)[buffer] = size
        self.used += size if fits else 0

    def free(self, buffer):
        self.used -= self.device.pop(buffer, 0)
        self.host.pop(buffer, None)

    def run(self):
        return run(self.plan, self)


def run(plan, model):
    """A Step for what comes before the first mark, and one for what follows each."""
    steps = [Step()]
    for at, (kind, *rest) in enumerate(plan):
        if kind == "s":
            steps.append(Step())
        elif kind == "a":
            model.alloc(rest[0], plans.rounded(rest[1]))
        elif kind == "f":
            model.free(rest[0])
        else:
            nanoseconds, uses = rest
            steps[-1].compute_ns += nanoseconds
            together = collections.defaultdict(bool)
            for buffer, written in uses:
                together[buffer] |= written
            model.use(steps[-1], at, together)
    return steps


def belady(plan, capacity):
    """The buffer goes whose next use is the farthest."""
    coming = next_uses(plan)
    return Pager(plan, capacity, lambda at, buffer: coming[at][buffer]).run()


def lru(plan, capacity):
    """The buffer goes whose last use is the oldest."""
    return Pager(plan, capacity, lambda at, _: -at).run()


def static(plan, capacity):
    return Static(plan, capacity).run()


def mean(steps):
    """The mean of steps, as one."""
    return Step(**{field.name: sum(getattr(step, field.name) for step in steps) / len(steps)
                   for field in dataclasses.fields(Step)})


# ---- what nobody can beat ----

PEAKS = 60  # acts looked at in a step, at most


class Peak:
    """An act at which more is live than there is room for. What does not fit is on the host by
    then, and so has left since it was last used; and it comes back before it is used next."""

    def __init__(self, plan, live, capacity, at):
        self.plan, self.live, self.at = plan, live, at
        self.excess = sum(live.values()) - capacity

    def stalls(self, acts, beside):
        """(act, ns) for each act on the way: for how long the kernels between it and the peak must
        wait, if the link takes away, or brings, all the time what they used. `beside`: also while
        kernels run."""
        idle, compute, found = dict(self.live), 0, []
        idle_bytes = sum(idle.values())
        for at in acts:
            kind, *rest = self.plan[at]
            if kind == "u":
                idle_bytes -= sum(idle.pop(buffer, 0) for buffer, _ in rest[1])
            found.append((at, max(0, (self.excess - idle_bytes) / LINK - compute)))
            compute += rest[0] if beside and kind == "u" and at != self.at else 0
        return found

    def stall_ns(self, length, beside):
        """Of both ways together, within so many acts."""
        before = self.stalls(range(self.at, max(-1, self.at - length - 1), -1), beside)
        after = self.stalls(range(self.at, min(len(self.plan), self.at + length + 1)), beside)
        most = list(itertools.accumulate((ns for _, ns in after), max))
        return max(ns + most[min(length - (self.at - at), len(most) - 1)] for at, ns in before)


def live_at_uses(plan):
    """(act, {buffer: size}) of each kernel: what was used before and is not freed yet."""
    sizes, live = {}, {}
    for at, (kind, *rest) in enumerate(plan):
        if kind == "a":
            sizes[rest[0]] = plans.rounded(rest[1])
        elif kind == "f":
            live.pop(rest[0], None)
        elif kind == "u":
            live.update((buffer, sizes[buffer]) for buffer, _ in rest[1])
            yield at, live


def floor_ns(plan, capacity, beside=True):
    """What a step takes at least if what kernels use is moved to them: also the best choice can
    leave only after it was used, and has to be back before it is used again. `beside`: memory moves
    while kernels run; otherwise only while the device rests."""
    marks = [at for at, act in enumerate(plan) if act[0] == "s"]
    begin, end = marks[-3:-1] if len(marks) > 2 else marks
    over = [(sum(live.values()), at) for at, live in live_at_uses(plan)
            if begin <= at < end and sum(live.values()) > capacity]
    chosen = {at for _, at in heapq.nlargest(PEAKS, over)}
    stalls = [Peak(plan, dict(live), capacity, at).stall_ns(end - begin, beside)
              for at, live in live_at_uses(plan) if at in chosen]
    return plans.compute_ns(plan[begin:end]) + max(stalls, default=0)
