#!/usr/bin/env python3
"""How much device memory training loops hold where the device has room.

Fifteen loops (loops.py) with PyTorch's own allocator, and under spillway in tensor mode with its
defaults. `plain` and `spillway` are the device memory in use at the end, what libraries allocate
included; neither gives memory back meanwhile. `calls` are the driver's memory calls of all steps,
`last` those of the last step. The target: at most 1 % more than plain, and none in the last step.
"""
import json
import subprocess
import sys

import bench

MOST = 1.01  # times what plain PyTorch holds


def run(interpreter, loop, flags):
    """What the loop prints, or None when it failed."""
    done = bench.simulate([interpreter, bench.HERE / "loops.py", loop], bench.LARGE, flags,
                          SITES="off")
    if not done.ran:
        print(done.stderr.splitlines()[-1] if done.stderr else "", file=sys.stderr)
        return None
    found = json.loads(done.stdout.splitlines()[-1])
    if done.device:
        found["device"] = done.device["committed_peak_bytes"]
    return found


def measure(table, interpreter, loop):
    plain = run(interpreter, loop, ["--no-pool"])
    ours = run(interpreter, loop, ["--mode", "tensor"])
    if plain is None or ours is None:
        table.row(loop=loop, verdict="MISSED: failed" if ours is None and plain else "does not run")
        return
    good = ours["device"] <= MOST * plain["device"] and ours["last_step_calls"] == 0
    table.row(loop=loop, allocated_MiB=plain["allocated_peak"] / bench.MIB,
              plain_MiB=plain["device"] / bench.MIB, spillway_MiB=ours["device"] / bench.MIB,
              more=100 * (ours["device"] / plain["device"] - 1), plain_calls=plain["calls"],
              calls=ours["calls"], last=ours["last_step_calls"],
              verdict="ok" if good else "MISSED")


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    names = subprocess.run([str(interpreter), str(bench.HERE / "loops.py"), "--list"],
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
    table = bench.Table(loop=-14, allocated_MiB=13, plain_MiB=9, spillway_MiB=12, more=7,
                        plain_calls=11, calls=6, last=5, verdict=-7)
    for loop in names.splitlines():
        measure(table, interpreter, loop)


if __name__ == "__main__":
    main()
