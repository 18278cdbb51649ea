#!/usr/bin/env python3
"""How much longer a process that uses no CUDA takes to start under LD_PRELOAD."""
import statistics
import subprocess
import sys
import time

import bench

REPEATS = 300


def seconds(command, env):
    begin = time.perf_counter()
    subprocess.run(command, env=env, check=True)
    return time.perf_counter() - begin


def main():
    rows = []
    for name, command in (("true", ["true"]), ("python3", [sys.executable, "-S", "-c", "pass"])):
        bare, pool = [], []
        for _ in range(REPEATS):
            bare.append(seconds(command, bench.environment(False)))
            pool.append(seconds(command, bench.environment(True)))
        bare_ms, pool_ms = (statistics.median(times) * 1e3 for times in (bare, pool))
        rows.append((f"start of {name}, bare", bare_ms, "ms", None))
        rows.append((f"start of {name}, more under LD_PRELOAD", pool_ms - bare_ms, "ms", 2))
    bench.report(rows)


if __name__ == "__main__":
    main()
