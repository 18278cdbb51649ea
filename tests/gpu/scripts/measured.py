"""What the scripts of the rows measure with PyTorch: peaks of memory, and times of kernels."""
import statistics
import time

import torch

from told import tell

SHORT = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
ROUNDS = 5
MOST_CALLS = 10
ROUND_MS = 4.0
SLEEP = 2_000_000  # cycles, of a kernel that runs while the others are submitted


def peak(work):
    """(bytes at the peak beyond what stays, bytes that stay, the result) of a call."""
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    kept = work()
    torch.cuda.synchronize()
    now = torch.cuda.memory_allocated()
    return torch.cuda.max_memory_allocated() - max(before, now), now - before, kept


def refused(error):
    """An error in one line."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:120]


def milliseconds(work, calls):
    """A call's time on the device, of several in a row that wait for nothing else."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(SLEEP)
    begin.record()
    for _ in range(calls):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / calls


def device_us(work):
    """The median of a call's time on the device, in microseconds."""
    work()
    once = milliseconds(work, 1)
    calls = max(1, min(MOST_CALLS, int(ROUND_MS / max(once, 1e-3))))
    rounds = ROUNDS if once < ROUND_MS else 3
    return round(1e3 * statistics.median(milliseconds(work, calls) for _ in range(rounds)), 3)


def submit_us(work, calls=200):
    """The time of the CPU to submit a call, in microseconds."""
    found = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        found.append((time.perf_counter() - begin) / calls)
    torch.cuda.synchronize()
    return round(1e6 * statistics.median(found), 3)


def all_until(clock, work, cases):
    """The work on each case while there is time; one that is refused is told. After a fault of the
    device there is no other."""
    for case in cases:
        if clock.left() == 0:
            tell("errors", at=work.__name__, error="the time was over")
            return
        try:
            work(*case)
        except torch.AcceleratorError:
            raise
        except (RuntimeError, OSError, AttributeError) as error:
            tell("errors", at=f"{work.__name__} {case}", error=refused(error))
