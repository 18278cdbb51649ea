#!/usr/bin/env python3
"""The purpose of memory, as spillway tells it, against what PyTorch's own objects take.

    test_categories.py [NAME...]     names of the corpus; without any, those of the quick test
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import corpus
import running
import wheel

QUICK = ["gpt2_like", "mixed_precision", "variable_length"]
CATEGORIES = "weights", "gradients", "optimizer_state"
MOST_ERROR = 0.01
names = QUICK


class Categories(unittest.TestCase):
    interpreter = None

    def run_script(self, folder, row):
        """The figures of PyTorch's objects after each step, and the report's figures."""
        path = folder / "r"
        run = running.Run([self.interpreter, str(running.HERE / "categories.py"),
                           str(running.HERE / row.command[0]), *row.command[1:]],
                          ["--record", str(path)])
        self.assertEqual(run.status, 0, run.stderr)
        done = subprocess.run([str(running.ROOT / "spillway"), "report", str(path), "--json"],
                              capture_output=True, check=True, timeout=300)
        (device,) = json.loads(done.stdout)["devices"]
        return run.steps["0"], device

    def check(self, name, steps, device):
        self.assertEqual(len(steps), len(device["steps"]))
        self.assertGreater(len(steps), 1)
        for truth, found in zip(steps, device["steps"]):
            for category in CATEGORIES:
                told = found["categories"][category]
                self.assertLessEqual(abs(told - truth[category]), MOST_ERROR * truth[category],
                                     f"{name}, step {found['number']}: {category}")
            self.assertEqual(sum(found["categories"].values()), found["live_bytes"])
        self.assertGreater(steps[-1]["weights"], 0)
        self.assertGreater(steps[-1]["gradients"], 0)
        at_peak = device["categories_at_peak"]
        self.assertEqual(sum(at_peak.values()), device["live_peak_bytes"])
        self.assertLess(at_peak["unknown"], MOST_ERROR * device["live_peak_bytes"])
        self.assertGreater(device["categories_peak"]["activations"], 0)

    def test_sums(self):
        for name in names:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                self.check(name, *self.run_script(pathlib.Path(folder), corpus.SCRIPTS[name]))


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name in corpus.SCRIPTS] or QUICK
    sys.argv[1:] = [word for word in sys.argv[1:] if word not in corpus.SCRIPTS]
    sys.exit(wheel.run_tests(Categories))
