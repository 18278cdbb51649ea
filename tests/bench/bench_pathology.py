#!/usr/bin/env python3
"""Memory must not grow without bound in loops that are known to make allocators do so.

The loop of pytorch#193400 (91 and 45.5 MiB, of which 2 MiB stay, a hundred times) and seeds of a
generator like it. Committed memory may exceed the peak of what is live by 64 MiB, over the whole
run. Growth allowance at its default.
"""
import sys

import bench

SEEDS = 1000
BOUND_MIB = 64
SETTINGS = {
    "PyTorch": "",
    "PyTorch max_split": "max_split_size_mb:64",
    "PyTorch expandable": "expandable_segments:True",
    "PyTorch expandable, max_split": "expandable_segments:True,max_split_size_mb:64",
}


def peaks(seed=None):
    command = [bench.PROGRAMS / "pathology", *([] if seed is None else [seed])]
    run = bench.simulate(command, bench.LARGE)
    if not run.ran:
        sys.exit(run.stderr)
    device = run.device
    return (device["live_peak_bytes"], device["committed_peak_bytes"], device["steals"],
            sum(device["driver_calls"].values()))


def row(table, who, live, committed, **more):
    excess = (committed - live) / bench.MIB
    table.row(who=who, live_MiB=live / bench.MIB, committed_MiB=committed / bench.MIB,
              excess_MiB=excess, **more)


def ours(table):
    live, committed, steals, calls = peaks()
    row(table, "spillway", live, committed, steals=steals, calls=calls,
        verdict="ok" if committed <= live + BOUND_MIB * bench.MIB else "MISSED")
    runs = sorted((peaks(seed) for seed in range(1, SEEDS + 1)), key=lambda run: run[1] - run[0])
    beyond = sum(run[1] > run[0] + BOUND_MIB * bench.MIB for run in runs)
    for name, run in (("median", runs[len(runs) // 2]), ("worst", runs[-1])):
        row(table, f"spillway, {name} of {SEEDS} seeds", *run[:2], steals=run[2], calls=run[3],
            verdict="ok" if beyond == 0 else f"MISSED: {beyond} seeds")


def peers(table, interpreter):
    for who, setting in SETTINGS.items():
        run = bench.simulate([interpreter, bench.HERE / "torch_pathology.py"], bench.LARGE,
                             ["--no-pool"], {"PYTORCH_ALLOC_CONF": setting} if setting else {})
        row(table, who, *map(int, run.stdout.split()))


def main():
    table = bench.Table(who=-32, calls=6, steals=6, live_MiB=9, committed_MiB=13, excess_MiB=10,
                        verdict=-7)
    ours(table)
    interpreter = bench.find_torch()
    if interpreter is not None:
        peers(table, interpreter)


if __name__ == "__main__":
    main()
