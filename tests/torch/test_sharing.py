#!/usr/bin/env python3
"""torch.multiprocessing of tensors on the GPU, under spillway."""
import sys
import unittest

import wheel
from running import HERE, Run

PACKAGE = str(HERE.parents[1] / "python")
LEFT_NOTHING = "exchanges, left: 0 0"


class Sharing(unittest.TestCase):
    interpreter = None

    def exchange(self, count, method, flags, *more, **settings):
        run = Run([self.interpreter, str(HERE / "shared_tensors.py"), str(count), method, *more],
                  flags, settings)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.stdout, f"{count} {LEFT_NOTHING}\n")
        self.assertEqual(run.unexpected(), [])
        return run

    def test_without_spillway(self):
        self.exchange(8, "spawn", ["--no-pool"])

    def test_segment_mode(self):
        """The segments are blocks of the pool."""
        run = self.exchange(200, "spawn", ["--mode", "segment"])
        device = run.stats["0"]["devices"][0]
        self.assertEqual(device["passed_allocs"], 0)
        self.assertGreater(device["allocs"], 0)
        self.assertEqual(device["live_bytes"], 0)

    def test_forkserver(self):
        self.exchange(20, "forkserver", ["--mode", "segment"])

    def test_while_memory_is_short(self):
        run = self.exchange(20, "spawn", ["--mode", "segment", "--limit", "64MiB",
                                          "--move-wait", "1000", "--check", "on"])
        self.assertNotIn("SPILLWAY_CHECK", run.stderr)

    def test_tensor_mode(self):
        """By share_tensors() of the package, since PyTorch's own way is closed."""
        run = self.exchange(40, "spawn", ["--mode", "tensor"], "spillway", PYTHONPATH=PACKAGE)
        self.assertEqual(run.stats["0"]["mode"], "tensor")
        self.assertEqual(run.stats["0"]["devices"][0]["live_bytes"], 0)

    def test_tensor_mode_while_memory_is_short(self):
        run = self.exchange(20, "spawn", ["--mode", "tensor", "--limit", "64MiB", "--move-wait",
                                          "1000", "--check", "on"], "spillway", PYTHONPATH=PACKAGE)
        self.assertNotIn("SPILLWAY_CHECK", run.stderr)

    def test_other_modes_keep_pytorchs_own_way(self):
        self.exchange(8, "spawn", ["--mode", "segment"], "spillway", PYTHONPATH=PACKAGE)

    def test_observe_mode(self):
        run = self.exchange(20, "spawn", ["--mode", "observe"])
        self.assertEqual(run.stats["0"]["devices"][0]["allocs"], 0)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Sharing))
