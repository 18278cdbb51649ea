#!/usr/bin/env python3
"""How much memory the traces need beyond what is live: five steps, with spilling off.

E = peak live / peak committed, on a device where everything fits. Capacity E = peak live / the
memory of the smallest simulated device on which the replay still runs; calls and modelled time
are those of its last step, flushes and host waits those of all steps. Peers are the real
allocators of the installed PyTorch. `delayed`: the same where work completes some time after it
was submitted, the worst of some seeds; what a pool waits for on the host is in its time.
"""
import bench
import torch_replayer
import traces

STEPS = 5
GROWTH = ["0%", "10%", None]  # None: the default, 15 %
SEEDS = [1, 2]
TARGETS = {  # E at allowance 0, capacity E; percent
    "pangu_2.6B": (95, 98), "resnet50": (98.5, 99), "S_1": (98.5, 99),
}


def percent(part, whole):
    return 100 * part / whole


def pool(growth, seed=0):
    """A contestant: replays a trace on a device of so much memory."""
    options = {} if growth is None else {"GROWTH": growth}

    def replay(name, memory):
        run = bench.simulate([bench.PROGRAMS / "steps", STEPS, traces.path(name)], memory,
                             SIM_SEED=seed, **options)
        return {"ran": run.ran, "committed_peak": run.device["committed_peak_bytes"],
                "flushes": 0, "waits": run.device["host_waits"],
                "calls": run.lines[-1] if run.ran else {}}
    return replay


def peer(replayer):
    def replay(name, memory):
        return {"waits": None, **replayer(traces.path(name), memory, STEPS)}
    return replay


def measure(name, replay):
    live = traces.live_peak(traces.path(name))
    capacity = bench.smallest(lambda memory: replay(name, memory)["ran"], live, 3 * live)
    tight = replay(name, capacity)
    return {
        "E": percent(live, replay(name, bench.LARGE)["committed_peak"]),
        "smallest_MiB": capacity // bench.MIB, "capacity_E": percent(live, capacity),
        "calls": bench.call_count(tight["calls"]),
        "ms": bench.microseconds(tight["calls"]) / 1000,
        "flushes": tight["flushes"], "waits": tight["waits"],
    }


def pool_row(name, growth):
    cells = measure(name, pool(growth))
    delayed = [measure(name, pool(growth, seed)) for seed in SEEDS]
    return {"allocator": f"spillway, growth {growth or 'default'}", **cells,
            "delayed_E": min(run["capacity_E"] for run in delayed),
            "delayed_waits": max(run["waits"] for run in delayed),
            "delayed_ms": max(run["ms"] for run in delayed)}


def verdict(name, growth, cells, peers):
    e, capacity_e = TARGETS[name]
    if (cells["capacity_E"] < capacity_e or (growth == "0%" and cells["E"] < e) or
            any(cells["capacity_E"] <= peer["capacity_E"] for peer in peers)):
        return "MISSED"
    return "ok"


def main():
    interpreter = bench.find_torch()
    peers = {} if interpreter is None else {
        kind: torch_replayer.Replayer(interpreter, kind) for kind in torch_replayer.KINDS}
    table = bench.Table(trace=-11, allocator=-24, E=6, smallest_MiB=12, capacity_E=10, calls=6,
                        ms=6, flushes=7, waits=5, delayed_E=9, delayed_waits=13, delayed_ms=10,
                        verdict=-7)
    for name in traces.NAMES:
        rows = {kind: measure(name, peer(replayer)) for kind, replayer in peers.items()}
        for growth in GROWTH:
            cells = pool_row(name, growth)
            table.row(trace=name, **cells, verdict=verdict(name, growth, cells, rows.values()))
        for kind, cells in rows.items():
            table.row(trace=name, allocator=kind, **cells)
    for replayer in peers.values():
        replayer.close()


if __name__ == "__main__":
    main()
