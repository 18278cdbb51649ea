#!/usr/bin/env python3
"""The driver calls of a training step once the program repeats itself: from the third step on.

Devices of the live peak divided by so much, and one without limit; growth allowance at its default.
The driver takes ranges of neighbouring chunks in one call, or one call a chunk (`per`), which is
undocumented and so simulated both ways. Calls are the mean of a step and are exact; ms is the time
they would take by two published cost tables, of the worst step.
"""
import bench
import traces

STEPS, FROM = 8, 3
SHARES = [0.98, 0.95, 0.90, 0.85, None]  # None: without limit
SHOWN = {"create": "cuMemCreate", "map": "cuMemMap", "access": "cuMemSetAccess",
         "unmap": "cuMemUnmap", "record": "cuEventRecord", "query": "cuEventQuery"}


def replay(name, memory, steps, per):
    return bench.simulate([bench.PROGRAMS / "steps", steps, traces.path(name)], memory,
                          SIM_UNMAP=per, SIM_SETACCESS=per)


def measure(name, memory, per):
    run = replay(name, memory, STEPS, per)
    if not run.ran:
        return None
    steps = run.lines[FROM - 1:]
    before = replay(name, memory, FROM - 1, per)
    cells = {short: sum(step[call] for step in steps) / len(steps)
             for short, call in SHOWN.items()}
    cells["batches"] = (run.device["steal_batches"] -
                        before.device["steal_batches"]) / len(steps)
    for letter in "AB":
        cells[f"ms_{letter}"] = max(bench.microseconds(step, f"published {letter}")
                                    for step in steps) / 1000
    return cells


def verdict(name, share, per, cells):
    if name != "pangu_2.6B" or per != "range":
        return None
    good = {0.98: cells["ms_A"] <= 5, 0.85: cells["ms_A"] == 0, None: cells["batches"] <= 8}
    return {True: "ok", False: "MISSED"}.get(good.get(share))


def main():
    table = bench.Table(trace=-11, device=-10, per=-6, batches=8, create=7, map=8, access=7,
                        unmap=7, record=7, query=7, ms_A=6, ms_B=6, verdict=-7)
    for name in traces.NAMES:
        live = traces.live_peak(traces.path(name))
        for share in SHARES:
            memory = bench.LARGE if share is None else int(live / share)
            for per in ("range", "chunk"):
                cells = measure(name, memory, per)
                where = {"trace": name, "per": per,
                         "device": "no limit" if share is None else f"live/{share}"}
                if cells is None:
                    table.row(**where, verdict="MISSED: out of memory")
                else:
                    table.row(**where, **cells, verdict=verdict(name, share, per, cells))


if __name__ == "__main__":
    main()
