#!/usr/bin/env python3
"""SPILLWAY_OVERLAP=guarded: moves beside the program, whose memory is unmapped meanwhile."""
import json

from spill import PATIENT, SEEDS, SPILL_LINE
import harness

PERIODIC = harness.ROOT / "tests/spill/periodic"
EXPLAINED = "the device reports an illegal address"


class Guarded(harness.Case):
    """Runs a program whose steps are all alike."""

    def periodic(self, steps, *modes, allow=(), status=0, **options):
        """Runs it; it checks its content itself. Returns the device's counters."""
        options = {"SIM_MEMORY": "64MiB", "OVERLAP": "guarded", **PATIENT, **options}
        self.result = self.run_program(PERIODIC, steps, *modes, status=status,
                                       allow=[SPILL_LINE, *allow], **options)
        device = self.result.device()
        self.assertEqual(device["ooms"], 0)
        for gauge in ("live_bytes", "committed_bytes", "host_bytes") if status == 0 else ():
            self.assertEqual(device[gauge], 0, gauge)
        return device

    def test_simulated_time(self):
        """What is measured is the simulator's time, so two runs measure the same."""
        first, second = (self.periodic(4, "named", SIM_SEED=1, SIM_TIME="on") for _ in range(2))
        for name in "moves", "stall_ns", "closed_ns":
            self.assertGreater(first[name], 0)
            self.assertEqual(first[name], second[name], name)

    def test_moves_beside_the_program(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                device = self.periodic(12, "named", SIM_SEED=seed, CHECK="on")
                self.assertGreater(device["moves_at_work"], device["moves"] // 2)

    def test_hidden_pointers(self):
        """The kernel loads addresses from memory: it ends with an error, or with right content."""
        ended = 0
        for seed in range(1, 6):
            self.periodic(8, "unnamed", SIM_SEED=seed, status=None, allow=[EXPLAINED])
            if self.result.status != 0:
                self.assertRegex(self.result.stdout, "= 700$")
                self.assertIn(EXPLAINED, self.result.stderr)
                ended += 1
        self.assertGreater(ended, 0)

    def test_a_kernel_that_is_not_known(self):
        """While such kernels run, moves have a stop."""
        device = self.periodic(12, "unknown", SIM_SEED=1)
        self.assertLess(device["moves_at_work"], device["moves"] // 4)
        self.assertGreater(device["moves"], 16)
        self.assertLess(device["second_copies"], device["moves"])

    def test_kernels_of_both_kinds(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                device = self.periodic(8, "named", "unknown", "named", SIM_SEED=seed)
                self.assertGreater(device["moves_at_work"], 0)

    def test_steps_are_prefetched_after_an_interruption(self):
        """Checks between steps do not stop prefetching, however many steps lie between them: all
        these steps together must not be taken for one."""
        whole = self.periodic(24, "named", SIM_SEED=1, SIM_TIME="on")
        for steps in (12, 3):
            with self.subTest(steps=steps):
                modes = ["named", "check"] * (24 // steps - 1) + ["named"]
                device = self.periodic(steps, *modes, SIM_SEED=1, SIM_TIME="on")
                self.assertGreater(device["prefetches"], whole["prefetches"] * 3 // 4)

    def test_dropped_content(self):
        """The simulated GPU has no room to keep the content."""
        for verify in ("off", "on"):
            device = self.periodic(8, "named", allow=["copy nothing"], status=1, SIM_SEED=1,
                                   SIM_PAYLOAD="80MiB", VERIFY=verify)
            self.assertGreater(device["moves"], 8)

    def test_blocks_that_a_rule_places_need_no_room(self):
        """What a rule puts on the host again and again is not expected on the device: nothing moves
        while the rest fits."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "brief", "match": {"size": {"min": "3MiB", "max": "3MiB"}},
             "action": {"placement": "host"}}]}))
        device = self.periodic(8, "named", POLICY=policy, SIM_MEMORY="78MiB", allow=[
            "rule brief"])
        self.assertEqual((device["moves"], device["spilled_bytes"]), (0, 0))
        self.assertGreater(device["host_peak_bytes"], 0)


if __name__ == "__main__":
    harness.main()
