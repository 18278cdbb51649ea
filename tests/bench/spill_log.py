"""What steps took, from the log of the simulated driver with simulated time.

Lines of the log: `PID TID N cuFunction = RESULT DETAILS t=BEGIN..END` for a call, and `PID TID N
  ran STREAM.N CLASS LABEL t=BEGIN..END device=BYTES in=BYTES out=BYTES` for work; times are virtual
nanoseconds. Before the call of a launch, `PID TID N   uses STREAM.N rADDRESS+BYTES wADDRESS+BYTES`
says in one or more lines what memory the kernel reads and writes. The kernel MARK stands where
steps begin, and where the last one ends.
"""
import bisect
import dataclasses

MARK = "spw_touch_step"
VMM = ("cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease")
WAITS = ("cuEventQuery", "cuStreamQuery", "cuEventSynchronize", "cuCtxSynchronize")
CALL_NS = 1000  # what those take by themselves
LINK_READ, LINK_WRITE = 35.0, 52.8  # bytes a nanosecond


@dataclasses.dataclass
class Step:
    ns: float = 0
    copies: int = 0      # over the link
    in_bytes: int = 0
    out_bytes: int = 0
    in_ns: int = 0       # how long the engines were at it
    out_ns: int = 0
    link_bytes: int = 0  # used by kernels where they are, on the host
    link_ns: float = 0   # what that took them
    kernel_ns: int = 0   # with it
    calls: int = 0       # on virtual memory
    calls_ns: int = 0
    waits: int = 0       # of the host, but for the one that ends the step
    waits_ns: int = 0

    @property
    def idle_ns(self):
        """The device's, when all kernels are in one stream."""
        return self.ns - self.kernel_ns


def times_of(word):
    begin, end = word[2:].split("..")
    return int(begin), int(end)


def use_of(word):
    return int(word[1:].partition("+")[0], 16), word[0] == "w"


def value_of(word):
    return int(word.partition("=")[2])


def read(path):
    """A Step for each but the last mark."""
    marks, works, calls = [], [], []
    with open(path, errors="replace") as log:
        for line in log:
            words = line.split()
            if len(words) > 8 and words[3] == "ran" and words[-4].startswith("t="):
                is_mark = words[6] == MARK
                begin, end = times_of(words[-4])
                if is_mark:
                    marks.append(end)
                works.append((begin, end, words[5], value_of(words[-2]), value_of(words[-1])))
            elif words[3] in VMM or words[3] in WAITS:
                calls.append((words[3], *times_of(words[-1])))
    steps = [Step(ns=later - mark) for mark, later in zip(marks, marks[1:])]

    def step_at(time):
        at = bisect.bisect_right(marks, time) - 1
        return steps[at] if 0 <= at < len(steps) else Step()
    for begin, end, kind, came, went in works:
        note_work(step_at(begin), kind, end - begin, came, went)
    for name, begin, end in calls:
        note_call(step_at(begin), name, end - begin)
    return steps


PROGRAM = ("cuMemAllocAsync", "cuMemAlloc_v2", "cuMemFreeAsync", "cuMemFree_v2",
           "cuLaunchKernel", "cuLaunchKernelEx")


@dataclasses.dataclass
class Program:
    """What a program did with memory and kernels."""
    calls: list  # (name, words of the details) of those that succeeded
    took: dict   # {item: nanoseconds} of the kernels
    uses: dict   # {item: [(address, written)]}


def read_program(path):
    program = Program([], {}, {})
    with open(path, errors="replace") as log:
        for line in log:
            words = line.split()
            if words[3] == "ran" and words[5] == "kernel" and words[-4].startswith("t="):
                begin, end = times_of(words[-4])
                program.took[words[4]] = end - begin
            elif words[3] == "uses":
                program.uses.setdefault(words[4], []).extend(map(use_of, words[5:]))
            elif words[3].removesuffix("_ptsz") in PROGRAM and words[5] == "0":
                program.calls.append((words[3].removesuffix("_ptsz"), words[6:]))
    return program


def note_work(step, kind, ns, came, went):
    if kind == "copy":
        step.copies += came > 0 or went > 0
        step.in_bytes += came
        step.out_bytes += went
        step.in_ns += ns if came > 0 else 0
        step.out_ns += ns if went > 0 else 0
    elif kind == "kernel":
        step.kernel_ns += ns
        step.link_bytes += came + went
        step.link_ns += came / LINK_READ + went / LINK_WRITE


def note_call(step, name, ns):
    if name in VMM:
        step.calls += 1
        step.calls_ns += ns
    elif ns > CALL_NS:
        step.waits += 1
        step.waits_ns += ns - CALL_NS


def mean(steps):
    """The mean of steps, as one."""
    return Step(**{field.name: sum(getattr(step, field.name) for step in steps) / len(steps)
                   for field in dataclasses.fields(Step)})
