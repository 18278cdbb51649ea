#!/usr/bin/env python3
"""Kernels that write where nothing tells of it, with the default settings: no content is lost.

They find the address in memory: written there by memsets or by another kernel, copied there long
before, in page-locked or managed memory, in a global of a module. tests/unit/test_hidden_writes.c
does the same at every moment of a migration, with many more seeds."""

import re

from spill import LONG, PATIENT, SPILL_LINE
import harness

THROUGH = harness.ROOT / "tests/spill/through"
PERIODIC = harness.ROOT / "tests/spill/periodic"
WAYS = ("none", "kernel", "name", "copy", "once", "graph", "copied", "rows", "batch", "global",
        "pinned", "managed", "map")
EXPLAINED = "the device reports an illegal address. With SPILLWAY_OVERLAP=guarded, "
SEEDS = range(1, 31) if LONG else (1,)


class Adversaries(harness.Case):
    def check_moved(self, result):
        device = result.device()
        self.assertGreater(device["moves"], 0)
        self.assertEqual(device["moves_at_work"], 0)
        return device["second_copies"]

    def test_through_pointers_in_memory(self):
        for way in WAYS if LONG else ("none", "kernel", "once", "pinned"):
            for seed in SEEDS:
                with self.subTest(way, seed=seed):
                    result = self.run_program(THROUGH, way, allow=[SPILL_LINE], SIM_MEMORY="64MiB",
                                              SIM_SEED=seed, **PATIENT)
                    self.assertEqual(result.stdout, "0 words wrong\n")
                    self.check_moved(result)

    def test_ahead_of_use(self):
        """Moves are predicted, and the predicted memory is written to after it was copied."""
        again = 0
        for modes in (["unnamed"], ["named", "unnamed"], ["unknown", "unnamed"]):
            for seed in SEEDS:
                with self.subTest(modes, seed=seed):
                    result = self.run_program(PERIODIC, 8, *modes, allow=[SPILL_LINE],
                                              SIM_MEMORY="64MiB", SIM_SEED=seed, **PATIENT)
                    again += self.check_moved(result)
                    self.assertGreater(result.device()["prefetches"], 0)
        self.assertGreater(again, 0)

    def test_guarded_ends_with_an_error_at_worst(self):
        """Never with wrong content. Such an end shows that these programs are adversaries."""
        ended = 0
        for way in WAYS if LONG else ("none", "kernel", "managed"):
            for seed in SEEDS if LONG else range(1, 6):
                with self.subTest(way, seed=seed):
                    result = self.run_program(THROUGH, way, status=None, OVERLAP="guarded",
                                              allow=[SPILL_LINE, EXPLAINED], SIM_MEMORY="64MiB",
                                              SIM_SEED=seed, **PATIENT)
                    if result.status == 0:
                        self.assertEqual(result.stdout, "0 words wrong\n")
                    else:
                        self.assertRegex(result.stdout, r"= 700$")
                        self.assertEqual(len(re.findall(EXPLAINED, result.stderr)), 1)
                        ended += 1
        self.assertGreater(ended, 0)


if __name__ == "__main__":
    harness.main()
