#!/usr/bin/env python3
"""The storm of tensors, bare and under spillway, with room and without; --long: more seeds."""
import sys

import fakes
import harness

STORM = fakes.program("storm")
LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
SEEDS = range(1, 13) if LONG else (1, 2)
ROUNDS = (60 if harness.SANITIZED else 200) * (5 if LONG else 1)
ALLOWED = [r"mode ", r"out of memory", fakes.SPILLED, r"from now on its own cache serves"]


class Storm(fakes.Case):
    def storm(self, seed, **options):
        result = self.run_program(STORM, seed, ROUNDS, allow=ALLOWED, timeout=900,
                                  **{"SIM_SEED": seed, "CHECK": "on", **options})
        self.assertIn("wrong: 0\n", result.stdout)
        device = result.device()
        self.assertEqual(device["live_bytes"], 0)
        self.assertEqual(device["allocs"], device["frees"])
        return result

    def test_bare(self):
        self.run_program(STORM, 1, ROUNDS, preload=False, SIM_SEED=1)

    def test_with_room(self):
        for seed in SEEDS:
            result = self.storm(seed)
            self.assertIn("refused: 0\n", result.stdout)
            self.assertEqual(result.stats["mode"], "tensor")

    def test_with_the_host(self):
        for seed in SEEDS:
            result = self.storm(seed, SIM_MEMORY="48MiB")
            self.assertIn("refused: 0\n", result.stdout)
            self.assertGreater(result.device()["spilled_bytes"], 0)

    def test_without_the_host(self):
        for seed in SEEDS:
            self.storm(seed, SIM_MEMORY="48MiB", SPILL="off")

    def test_in_segment_mode(self):
        for seed in SEEDS:
            self.storm(seed, MODE="segment")


if __name__ == "__main__":
    harness.main()
