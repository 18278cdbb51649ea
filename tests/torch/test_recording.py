#!/usr/bin/env python3
"""The recording of a training, judged by PyTorch's own functions for snapshots."""
import json
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

import running
import wheel

STEPS = 4
# With the functions behind pytorch.org/memory_viz: what they make of the file, as JSON.
JUDGE = """
import json, pickle, sys
from torch.cuda import _memory_viz as viz
snapshot = pickle.load(open(sys.argv[1], "rb"))
same = lambda lines, *_: lines
held = sum(int(line.rsplit(" ", 1)[1]) for line in viz.memory(snapshot, same).splitlines())
print(json.dumps({
    "segsum": viz.segsum(snapshot), "trace": viz.trace(snapshot), "held": held,
    "segments": viz.segments(snapshot, same),
    "pages": [len(viz.trace_plot(snapshot)), len(viz.segment_plot(snapshot))]}))
"""


class Recording(unittest.TestCase):
    interpreter = None

    def report(self, path, *arguments):
        done = subprocess.run([str(running.ROOT / "spillway"), "report", str(path), *arguments],
                              capture_output=True, check=True, timeout=300)
        self.assertEqual(done.stderr, b"")
        return done.stdout

    def test_training(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            path, pickled = folder / "r", folder / "snapshot.pickle"
            run = running.Run([self.interpreter, str(running.HERE / "gpt2_like.py"), "--steps",
                               str(STEPS)], ["--record", str(path)])
            self.assertEqual(run.status, 0, run.stderr)
            (stats,) = run.stats.values()
            self.check_sums(json.loads(self.report(path, "--json")), stats)
            self.assertLess(path.stat().st_size /
                            json.loads(self.report(path, "--json"))["events"], 12)
            self.check_stacks(path)
            self.check_page(path)
            pickled.write_bytes(self.report(path, "--memory-viz"))
            done = subprocess.run([self.interpreter, "-c", JUDGE, str(pickled)],
                                  capture_output=True, text=True, check=True, timeout=300)
            self.check_judgement(json.loads(done.stdout), pickle.loads(pickled.read_bytes()), stats)

    def check_stacks(self, path):
        """They end with operators, and the backward pass is one branch; native frames on
        request."""
        short, full = (self.report(path, "--folded", *flags).decode().splitlines()
                       for flags in ((), ("--native",)))
        total = [sum(int(line.rpartition(" ")[2]) for line in lines) for lines in (short, full)]
        self.assertEqual(*total)
        self.assertFalse([line for line in short if "libtorch" in line or "_call_impl" in line])
        self.assertTrue(any("libtorch" in line and "_call_impl" in line for line in full))
        self.assertTrue(any(line.startswith("gpt2_like.py:") and ";aten::" in line
                            for line in short))
        self.assertTrue(any(line.startswith("backward pass;") and ";aten::" in line
                            for line in short))

    def check_page(self, path):
        """It knows the card and the steps that nobody marked, has wrappers at hand, and puts the
        loss's backward below its only line; that of softmax is in each layer the same line."""
        page = self.report(path, "--html").decode()
        (run,) = json.loads(re.search(r'type="application/json">(.*?)</script>', page,
                                      re.S)[1])["runs"]
        self.assertRegex(dict(run["facts"])["card"], "^NVIDIA .*, simulated$")
        self.assertEqual(run["steps_kind"], "optimizer steps")
        self.assertGreaterEqual(sum(step["count"] for step in run["steps"]), STEPS - 1)
        wrappers = {run["frames"][number].partition("  ")[0] for number in run["wrappers"]}
        self.assertLessEqual({"_call_impl", "_wrapped_call_impl", "wrapper"}, wrappers)
        (device,) = run["devices"]
        self.assertGreater(len(device["blocks_at_peak"]), 100)
        found = json.loads(self.report(path, "--speedscope"))
        names = [frame["name"] for frame in found["shared"]["frames"]]
        stacks = {tuple(names[frame] for frame in stack)
                  for profile in found["profiles"] for stack in profile["samples"]}
        for line, node in (("train", "NllLossBackward0"), ("train", "LogSoftmaxBackward0"),
                           ("forward", "SoftmaxBackward0")):
            self.assertTrue(any(stack[:3] == ("backward pass", line, node) for stack in stacks),
                            node)
        self.assertTrue(any(stack[:2] == ("backward pass", "MmBackward0") for stack in stacks))

    def check_sums(self, found, stats):
        (device,), (counted,) = found["devices"], stats["devices"]
        for figure in "live_peak_bytes", "live_bytes", "allocs", "frees", "steals":
            self.assertEqual(device[figure], counted[figure], figure)
        recorded = {site["label"]: 0 for site in device["sites"]}
        for site in device["sites"]:
            recorded[site["label"]] += site["device_peak_bytes"]
        self.assertEqual(sum(recorded.values()), counted["live_peak_bytes"])
        by_id = sorted(site["device_peak_bytes"] for site in stats["sites"]
                       if site["device_peak_bytes"] > 0)
        self.assertEqual(sorted(site["device_peak_bytes"] for site in device["sites"]
                                if site["device_peak_bytes"] > 0), by_id)
        self.assertTrue(any("gpt2_like.py" in label and "softmax" in label for label in recorded))

    def check_judgement(self, judged, snapshot, stats):
        (counted,) = stats["devices"]
        self.assertEqual(judged["held"], sum(segment["total_size"]
                                             for segment in snapshot["segments"]))
        self.assertEqual(sum(block["size"] for segment in snapshot["segments"]
                             for block in segment["blocks"]
                             if block["state"] == "active_allocated"), counted["live_bytes"])
        self.assertIn("segments", judged["segsum"])
        self.assertIn("gpt2_like.py", judged["segments"])
        self.assertGreater(judged["trace"].count("\n"), 1000)
        self.assertGreater(min(judged["pages"]), 10000)
        self.assertEqual(sum(entry["action"] == "alloc" for entry in snapshot["device_traces"][0]),
                         counted["allocs"])


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Recording))
