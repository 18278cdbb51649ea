#!/usr/bin/env python3
"""The memory and the memory calls of one rank of a sharded training (train_sharded.py).

PyTorch's own allocator plain and with expandable segments, and spillway in tensor mode, with
spilling off, on a device of 139 GiB; spillway also on devices that are nearly too small. `live` and
`reserved` are peaks in GiB, as each counts them: PyTorch its tensors, spillway also what the
libraries allocate. `step N` are the memory calls of that step. The targets are for spillway's
default.
"""
import sys

import bench
from bench_frag_torch import KINDS

GIB_OF_DEVICE = 139
SMALL_GIB = (36, 35)
STEPS = 6
SHOWN = range(2, STEPS + 1)
CALLS = ("cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap",
         "cuMemRelease")
MOST_GIB = 38.5  # the target for reserved memory
QUIET_FROM = 3   # the target for the first step without a call


def measure(interpreter, kind, gib):
    flags, settings = KINDS[kind]
    run = bench.simulate([interpreter, bench.HERE / "train_sharded.py", "--steps", STEPS],
                         gib * bench.GIB, flags, settings, SITES="off")
    if not run.ran:
        sys.exit(run.stderr)
    *steps, peaks = run.lines
    if run.device:
        live, reserved = run.device["live_peak_bytes"], run.device["committed_peak_bytes"]
    else:
        live, reserved = peaks["allocated_peak"], peaks["reserved_peak"]
    calls = {f"step_{number}": sum(steps[number - 1]["calls"][name] for name in CALLS)
             for number in SHOWN}
    return {"live_GiB": live / bench.GIB, "reserved_GiB": reserved / bench.GIB, **calls,
            "steals": run.device.get("steals")}


def verdict(cells):
    noisy = any(cells[f"step_{number}"] for number in SHOWN if number >= QUIET_FROM)
    return "MISSED" if noisy or cells["reserved_GiB"] > MOST_GIB else "ok"


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    rows = [*((kind, GIB_OF_DEVICE) for kind in KINDS), *(("spillway", gib) for gib in SMALL_GIB)]
    table = bench.Table(allocator=-19, device_GiB=10, live_GiB=9, reserved_GiB=12,
                        **{f"step_{number}": 7 for number in SHOWN}, steals=7, verdict=-7)
    for kind, gib in rows:
        cells = measure(interpreter, kind, gib)
        table.row(allocator=kind, device_GiB=gib, **cells,
                  verdict=verdict(cells) if kind == "spillway" else None)


if __name__ == "__main__":
    main()
