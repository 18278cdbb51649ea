#!/usr/bin/env python3
"""The cost of a call site, in nanoseconds: natively and under Python, at two stack depths.

`repeat`: a stack that the thread has had before. `first sight`: the median of stacks that are new,
by code that has run before. Beside them libunwind's unw_backtrace and glibc's backtrace, which only
find the native frames, and what PyTorch's own record of call sites adds to an allocation from its
cache, at as many frames of Python and with or without the native ones. A program under Python
has some native frames already, so there are at least as many as asked for. The processor's time of
the thread; the best of the rounds.
"""
import json
import subprocess
import sys

import bench

ROUNDS = 5
CHILD = """
import ctypes, json, sys
library = ctypes.PyDLL(sys.argv[1])
mode, native, python = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
probe = ctypes.CDLL(sys.argv[5])
probe.probe_start({"native": 1, "python": 2, "both": 3}[mode])
names = "first", "repeat", "unwind", "backtrace"
for name in names:
    getattr(library, "speed_" + name).restype = ctypes.c_double

def here(depth):
    if depth > 1:
        return here(depth - 1)
    return [getattr(library, "speed_" + name)(native) for name in names[:2]] + [
        library.speed_native(), library.speed_python()]

def on_a_thread():
    figures = (ctypes.c_double * 5)(native)
    library.speed_thread(figures)
    return [figures[0], figures[1], figures[4], 0, figures[2], figures[3]]

print(json.dumps(on_a_thread() if python == 0 else here(python - 1)))
"""
# mode, native and Python frames, and the targets of a repeat and of a first sight
CASES = [("native", 8, 0, 100, 2000), ("both", 8, 8, 100, 2000), ("native", 36, 0, 200, 2000),
         ("python", 36, 25, 200, 2000), ("both", 36, 25, 200, 2000)]


def measure(mode, native, python):
    """The best of: first sight, repeat, native frames, Python frames, the two others."""
    rounds = []
    for _ in range(ROUNDS):
        command = [sys.executable, "-c", CHILD, bench.PROGRAMS / "libsite_speed.so", mode, native,
                   python, bench.ROOT / "tests/unit/libsite_probe.so"]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                              check=True)
        rounds.append(json.loads(done.stdout))
    return [min(values) for values in zip(*rounds)]


def recorded(interpreter, depth):
    """{kind of stacks: ns that PyTorch's record adds}, below so many frames of Python."""
    command = [bench.COMMAND, "sim", "--no-pool", "--", interpreter,
               bench.HERE / "torch_recorded.py", depth]
    runs = []
    for _ in range(ROUNDS):
        done = subprocess.run([str(word) for word in command], text=True, check=True,
                              env=bench.clean_environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        runs.append({name: float(number) for name, number in
                     map(str.split, done.stdout.splitlines())})
    return {name: min(run[name] for run in runs) for name in runs[0]}


def main():
    rows = []
    for mode, native, python, repeat_bound, first_bound in CASES:
        first, repeat, natives, pythons, *others = measure(mode, native, python)
        what = f"{mode}, {natives:g} native + {pythons:g} Python frames"
        rows.append((f"repeat, {what}", repeat, "ns", repeat_bound))
        if mode != "python":  # the new stacks differ in their native frames
            rows.append((f"first sight, {what}", first, "ns", first_bound))
        for name, value in zip(("libunwind's unw_backtrace", "glibc's backtrace"), others):
            rows.append((f"{name}, {natives:g} frames", value, "ns", None))
    interpreter = bench.find_torch()
    for depth in (8, 25) if interpreter is not None else ():
        for stacks, value in recorded(interpreter, depth).items():
            kind = "Python frames" if stacks == "python" else "Python frames and the native ones"
            rows.append((f"_record_memory_history, {depth} {kind}", value, "ns", None))
    bench.report(rows)


if __name__ == "__main__":
    main()
