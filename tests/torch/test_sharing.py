#!/usr/bin/env python3
"""torch.multiprocessing of tensors on the GPU, under spillway."""
import sys
import unittest

import wheel
from running import HERE, Run

LEFT_NOTHING = "exchanges, left: 0 0"


class Sharing(unittest.TestCase):
    interpreter = None

    def exchange(self, count, method, flags):
        run = Run([self.interpreter, str(HERE / "shared_tensors.py"), str(count), method], flags)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.stdout, f"{count} {LEFT_NOTHING}\n")
        self.assertEqual(run.unexpected(), [])
        return run

    def test_without_spillway(self):
        self.exchange(8, "spawn", ["--no-pool"])

    def test_blocks_of_the_pool(self):
        """Tensors in tensor mode, segments in segment mode."""
        for mode in ("tensor", "segment"):
            with self.subTest(mode):
                run = self.exchange(100, "spawn", ["--mode", mode])
                self.assertEqual(run.stats["0"]["mode"], mode)
                device = run.stats["0"]["devices"][0]
                self.assertEqual(device["passed_allocs"], 0)
                self.assertGreater(device["allocs"], 0)
                self.assertEqual(device["live_bytes"], 0)

    def test_forkserver(self):
        self.exchange(20, "forkserver", [])

    def test_while_memory_is_short(self):
        for mode in ("tensor", "segment"):
            with self.subTest(mode):
                run = self.exchange(20, "spawn", ["--mode", mode, "--limit", "64MiB",
                                                  "--move-wait", "1000", "--check", "on"])
                self.assertNotIn("SPILLWAY_CHECK", run.stderr)

    def test_observe_mode(self):
        run = self.exchange(20, "spawn", ["--mode", "observe"])
        self.assertEqual(run.stats["0"]["devices"][0]["allocs"], 0)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Sharing))
