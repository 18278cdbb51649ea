#!/usr/bin/env python3
"""The cost of being preloaded for a process that allocates nothing: its start and passing calls.

Under LD_PRELOAD against bare, in turns. Look-ups are dlsym calls of somebody else's; a launch goes
through the driver's door on the simulated GPU, which makes up its bare time.
"""
import statistics
import subprocess
import sys
import time

import bench

REPEATS = 300
BOUND_NS = 20


def seconds(command, env):
    begin = time.perf_counter()
    subprocess.run(command, env=env, check=True)
    return time.perf_counter() - begin


def start_rows():
    for name, command in (("true", ["true"]), ("python3", [sys.executable, "-S", "-c", "pass"])):
        bare, pool = [], []
        for _ in range(REPEATS):
            bare.append(seconds(command, bench.environment(False)))
            pool.append(seconds(command, bench.environment(True)))
        bare_ms, pool_ms = (statistics.median(times) * 1e3 for times in (bare, pool))
        yield f"start of {name}, bare", bare_ms, "ms", None
        yield f"start of {name}, more under LD_PRELOAD", pool_ms - bare_ms, "ms", 2


def call_rows():
    bare, pool = bench.compare([bench.PROGRAMS / "lookup_speed"], repeats=9)
    for name in bare:
        yield f"{name}, bare", bare[name], "ns", None
        yield f"{name}, more under LD_PRELOAD", pool[name] - bare[name], "ns", BOUND_NS
    bare, pool = bench.compare([bench.PROGRAMS / "pass_speed"], repeats=9, sim=True)
    for name in bare:
        yield f"{name}, bare", bare[name], "ns", None
        yield f"{name}, more under LD_PRELOAD", pool[name] - bare[name], "ns", BOUND_NS


def main():
    bench.report([*start_rows(), *call_rows()])


if __name__ == "__main__":
    main()
