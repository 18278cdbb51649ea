#!/usr/bin/env python3
"""The driver calls of a training step once the program repeats itself: from the sixth step on.

Devices of the live peak divided by so much, and one without limit; growth allowance at its default.
Calls, and the chunks that calls for access covered, are the mean of a step and are exact. ms_A and
ms_B are the time that they would take by two published cost tables, of the worst step; ms_range by
the first one, if a call cost the same for a range of any length. ms_before is the time (A) of the
steps 2 to 5 together, in which the pool plans its layout.
"""
import bench
import traces

STEPS, FROM = 10, 6
SHARES = [0.98, 0.95, 0.90, 0.85, None]  # None: without limit
SHOWN = {"create": "cuMemCreate", "map": "cuMemMap", "access": "cuMemSetAccess",
         "chunks": "cuMemSetAccess chunks", "unmap": "cuMemUnmap", "record": "cuEventRecord",
         "query": "cuEventQuery"}
MOST_MS = {  # targets of ms_A, by trace and device
    ("pangu_2.6B", 0.98): 5, ("pangu_2.6B", 0.85): 0, ("S_1", 0.98): 2, ("S_1", 0.85): 0,
    ("resnet50", 0.85): 0,
}


def replay(name, memory, steps):
    return bench.simulate([bench.PROGRAMS / "steps", steps, traces.path(name)], memory)


def measure(name, memory):
    run = replay(name, memory, STEPS)
    if not run.ran:
        return None
    steps = run.lines[FROM - 1:]
    before = replay(name, memory, FROM - 1)
    cells = {short: sum(step[call] for step in steps) / len(steps)
             for short, call in SHOWN.items()}
    cells["batches"] = (run.device["steal_batches"] -
                        before.device["steal_batches"]) / len(steps)
    for letter in "AB":
        cells[f"ms_{letter}"] = max(bench.microseconds(step, f"published {letter}")
                                    for step in steps) / 1000
    cells["ms_before"] = sum(bench.microseconds(step) for step in run.lines[1:FROM - 1]) / 1000
    cells["ms_range"] = max(bench.microseconds(step, per="range") for step in steps) / 1000
    return cells


def verdict(name, share, cells):
    if share is None:
        return "ok" if cells["batches"] <= 8 else "MISSED"
    most = MOST_MS.get((name, share))
    return None if most is None else "ok" if cells["ms_A"] <= most else "MISSED"


def main():
    table = bench.Table(trace=-11, device=-10, batches=8, create=7, map=8, access=7, chunks=8,
                        unmap=7, record=7, query=7, ms_A=7, ms_B=7, ms_range=8, ms_before=9,
                        verdict=-7)
    for name in traces.NAMES:
        live = traces.live_peak(traces.path(name))
        for share in SHARES:
            memory = bench.LARGE if share is None else int(live / share)
            cells = measure(name, memory)
            where = {"trace": name, "device": "no limit" if share is None else f"live/{share}"}
            if cells is None:
                table.row(**where, verdict="MISSED: out of memory")
            else:
                table.row(**where, **cells, verdict=verdict(name, share, cells))


if __name__ == "__main__":
    main()
