#!/usr/bin/env python3
"""How much memory training needs beyond what is live, with the real PyTorch.

Models of a usual size and shape (train.py), by PyTorch's own allocator plain and with expandable
segments, and under spillway in tensor mode, with spilling off. E = live / peak committed (reserved)
where everything fits, as each counts it: PyTorch its tensors, spillway also what the libraries
allocate. Capacity E = live of tensor mode / the memory of the smallest simulated device that
completes, to about 0.2 %; what the driver itself takes of a device is in it, the same for all.
`gain`: how much more memory than spillway the better of the others needs, in percent.
"""
import json
import statistics
import sys

import bench

MODELS = ["gpt2", "variable", "bert", "llama"]
STEPS_OF_LIVE = 500  # bisection goes down to live / this
KINDS = {
    "PyTorch": (["--no-pool"], {}),
    "PyTorch expandable": (["--no-pool"], {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
    "spillway, growth 0%": (["--growth", "0%"], {}),
    "spillway": ([], {}),
}
PEERS = [kind for kind in KINDS if kind.startswith("PyTorch")]


class Contestant:
    """One allocator with one model."""

    def __init__(self, interpreter, model, kind):
        self.command = [interpreter, bench.HERE / "train.py", model]
        self.flags, self.settings = KINDS[kind]

    def run(self, memory):
        return bench.simulate(self.command, memory, self.flags, self.settings, SITES="off")

    def roomy(self):
        """Live and committed peaks where everything fits."""
        run = self.run(bench.LARGE)
        if not run.ran:
            sys.exit(run.stderr)
        peaks = json.loads(run.stdout.splitlines()[-1])
        if run.device:
            return run.device["live_peak_bytes"], run.device["committed_peak_bytes"]
        return peaks["allocated_peak"], peaks["reserved_peak"]


def measure(interpreter, model):
    contestants = {kind: Contestant(interpreter, model, kind) for kind in KINDS}
    peaks = {kind: contestant.roomy() for kind, contestant in contestants.items()}
    live = peaks["spillway"][0]
    step = max(bench.GRANULE, live // STEPS_OF_LIVE // bench.GRANULE * bench.GRANULE)
    rows = {}
    for kind, contestant in contestants.items():
        committed = peaks[kind][1]
        capacity = bench.smallest(lambda memory, c=contestant: c.run(memory).ran, live,
                                  committed + committed // 8, step)
        rows[kind] = {"live_MiB": peaks[kind][0] / bench.MIB,
                      "committed_MiB": committed / bench.MIB,
                      "E": 100 * peaks[kind][0] / committed, "smallest_MiB": capacity // bench.MIB,
                      "capacity_E": 100 * live / capacity}
    return rows


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    gains = []
    table = bench.Table(model=-9, allocator=-19, live_MiB=9, committed_MiB=13, E=6, smallest_MiB=12,
                        capacity_E=10, gain=6, verdict=-7)
    for model in MODELS:
        rows = measure(interpreter, model)
        better = min(rows[kind]["smallest_MiB"] for kind in PEERS)
        for kind, cells in rows.items():
            gain = None
            if kind not in PEERS:
                gain = 100 * (better / cells["smallest_MiB"] - 1)
                cells["verdict"] = "ok" if gain >= 0 else "MISSED"
            if kind == "spillway":
                gains.append(gain)
            table.row(model=model, allocator=kind, gain=gain, **cells)
    table.row(model="median", allocator="spillway", gain=statistics.median(gains))


if __name__ == "__main__":
    main()
