#!/usr/bin/env python3
"""The Python package `spillway` in a training with PyTorch: its figures are PyTorch's own, and its
report is that of the training."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import running
import wheel

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
PROGRAM = """
import json, torch, spillway

def live():
    return spillway.stats()["devices"][0]["async_live_bytes"]

model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
figures = []
for _ in range(4):
    spillway.step()
    with spillway.mark("forward"):
        loss = model(torch.ones(512, 1024, device="cuda")).sum()
    with spillway.mark("backward"):
        loss.backward()
    with spillway.mark("update"):
        optimizer.step()
    optimizer.zero_grad()
    figures.append([live(), torch.cuda.memory_allocated()])
with spillway.mark("nothing"):
    pass
print(json.dumps({"figures": figures, "peak": torch.cuda.max_memory_allocated(),
                  "stats": spillway.stats(), "report": str(spillway.report().path)}))
"""


class Package(unittest.TestCase):
    interpreter = None

    def test_training(self):
        with tempfile.TemporaryDirectory() as name:
            recording = pathlib.Path(name) / "r"
            settings = {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
            run = running.Run([self.interpreter, "-c", PROGRAM], ["--record", str(recording)],
                              settings)
            self.assertEqual(run.status, 0, run.stderr)
            self.assertEqual(run.unexpected(), [])
            found = json.loads(run.stdout)
            self.check(found)
            page = pathlib.Path(found["report"]).read_text()
            self.assertIn("forward", page)
            done = subprocess.run([str(running.ROOT / "spillway"), "report", "--json",
                                   str(recording)], capture_output=True, check=True, timeout=300)
            self.check_marks(json.loads(done.stdout), found["peak"])

    def check(self, found):
        for ours, torchs in found["figures"]:
            self.assertEqual(ours, torchs)
            self.assertGreater(ours, 0)
        (device,) = found["stats"]["devices"]
        self.assertEqual(device["async_live_peak_bytes"], found["peak"])
        self.assertEqual(found["stats"]["mode"], "tensor")

    def check_marks(self, recorded, peak):
        self.assertEqual(recorded["steps"], 4)
        marks = {mark["name"]: mark for mark in recorded["marks"]}
        self.assertEqual([mark["count"] for mark in marks.values()], [4, 4, 4, 1])
        peaks = [mark["live_peak_bytes"][0] for mark in marks.values()]
        self.assertEqual(max(peaks), recorded["devices"][0]["live_peak_bytes"])
        self.assertGreaterEqual(max(peaks), peak)
        self.assertLess(marks["nothing"]["live_peak_bytes"][0], max(peaks))


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Package))
