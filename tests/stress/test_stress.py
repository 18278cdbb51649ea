#!/usr/bin/env python3
"""The stress program, bare and under spillway, with room and without."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../preload"))
import harness

STRESS = harness.ROOT / "tests/stress/stress"
ROUNDS = 300 if harness.SANITIZED else 1500


class Stress(harness.Case):
    def stress(self, seed, **options):
        """The pool's invariants are checked after every operation, unless the options say not."""
        allow = [r"out of memory", r"are on the host now"]
        result = self.run_program(STRESS, seed, ROUNDS, allow=allow,
                                  **{"SIM_SEED": seed, "CHECK": "on", **options})
        device = result.device()
        self.assertEqual(device["live_bytes"], 0)
        self.assertEqual(device["committed_bytes"], 0)
        self.assertEqual(device["host_bytes"], 0)
        self.assertEqual(device["allocs"], device["frees"])
        self.assertEqual(device["passed_allocs"], 0)
        return result

    def test_bare(self):
        """The program itself is right, and so is the simulated GPU."""
        self.run_program(STRESS, 1, ROUNDS, preload=False, SIM_SEED=1)

    def test_with_room(self):
        for seed in (1, 2, 3):
            self.stress(seed)

    def test_without_room(self):
        """Hardly more memory than is live: blocks are moved about and some are refused."""
        results = [self.stress(seed, SIM_MEMORY="64MiB", SPILL="off") for seed in (1, 2, 3)]
        self.assertGreater(sum(result.device()["steals"] for result in results), 0)

    def test_with_the_host(self):
        """What has no room on the device is on the host, and nothing is refused."""
        for seed in (1, 2):
            device = self.stress(seed, SIM_MEMORY="36MiB").device()
            self.assertGreater(device["spilled_bytes"], 0)
            self.assertEqual(device["ooms"], 0)

    def test_with_little_of_the_host(self):
        self.stress(4, SIM_MEMORY="48MiB", HOST_LIMIT="32MiB")

    def test_at_full_speed(self):
        self.stress(4, CHECK="off", SIM_MEMORY="96MiB")

    def test_seeds_of_the_driver_choices(self):
        """The undocumented choices of the driver, the other way round."""
        self.stress(5, SIM_UNMAP="chunk", SIM_MEMORY="64MiB")


if __name__ == "__main__":
    harness.main()
