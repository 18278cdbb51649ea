#!/usr/bin/env python3
"""Write validation: second copies are skipped once audits found no write through a pointer that is
not among a kernel's arguments."""
import json
import re

from spill import LONG, PATIENT, SEEDS, SPILL_LINE
import harness

PERIODIC = harness.ROOT / "tests/spill/periodic"
ILLEGAL_ADDRESS = 700


class Validation(harness.Case):
    """Runs a program whose steps are all alike."""
    FOUND = r"a kernel wrote through a pointer that is not among its arguments"

    def periodic(self, steps, *modes, allow=(), status=0, **options):
        """Runs it; it checks its content itself. Returns the device's counters."""
        options = {"SIM_MEMORY": "64MiB", "OVERLAP": "validated", **PATIENT, **options}
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

    def test_second_copies_are_skipped_once_validated(self):
        """Afterwards migrations are copied once, except one in sixteen, which is audited. How many
        are needed before depends on when the device is idle, so one run is read twice."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                last = self.periodic(10, "named", "counters", "named", "named", SIM_SEED=seed)
                first = {name: int(value) for name, value in
                         (line.split() for line in self.result.stdout.splitlines())}
                self.assertGreaterEqual(first["audits"], 4)
                self.assertLess(first["audits"], first["believed_moves"])
                self.assertGreater(last["believed_moves"], first["believed_moves"] + 16)
                later = last["believed_moves"] - first["believed_moves"]
                self.assertLessEqual(last["audits"] - first["audits"], 1 + later / 15)
                self.assertEqual(last["failed_audits"], 0)

    def test_write_through_hidden_pointer_is_found(self):
        """The kernel loads addresses from memory. The user is told once, and no content is lost."""
        kinds = ({"SIM_SEED": 1, "CHECK": "on", "VERIFY": "on"}, {"SIM_SEED": 2},
                 {"SIM_SEED": 3, "SIM_UNMAP": "chunk"})
        for options in kinds if LONG else kinds[:1]:
            with self.subTest(**options):
                device = self.periodic(12, "unnamed", allow=[self.FOUND], **options)
                lines = [line for line in self.result.said() if re.search(self.FOUND, line)]
                self.assertEqual(len(lines), 1, self.result.stderr)
                self.assertRegex(lines[0], r"to the block of 3\.\d+ MiB at 0x\w+ \(.*periodic.*\),"
                                           r" while .*\. Nothing was lost.*held back$")
                self.assertEqual((device["failed_audits"], device["believed_moves"]), (1, 0))
                self.assertGreater(device["moves"], 4)

    def test_other_modes_do_not_audit(self):
        """`safe` loses nothing without audits; `trust` loses content of such a program."""
        for overlap in ("safe", "off"):
            device = self.periodic(8, "unnamed", SIM_SEED=1, OVERLAP=overlap)
            self.assertEqual((device["audits"], device["believed_moves"]), (0, 0))
        self.assertTrue(any(self.loses(seed) for seed in range(1, 6)))

    def loses(self, seed):
        """True when the program lost content: chance decides if a kernel writes at that moment."""
        self.periodic(8, "unnamed", SIM_SEED=seed, OVERLAP="trust", status=None,
                      allow=["does not give back access"])
        if self.result.status == 0:
            return False
        self.assertRegex(self.result.stdout, f"words wrong|= {ILLEGAL_ADDRESS}$")
        return True

    def test_another_repetition_is_validated_anew(self):
        """Audits of one repetition do not count for another."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                device = self.periodic(10, "named", "otherwise", SIM_SEED=seed)
                self.assertGreaterEqual(device["audits"], 8)
                self.assertGreater(device["believed_moves"], 8)

    def test_steps_are_prefetched_after_an_interruption(self):
        """Checks between steps do not stop prefetching, however many steps lie between them: all
        these steps together must not be taken for one."""
        whole = self.periodic(24, "named", SIM_SEED=1)
        for steps in (12, 3):
            with self.subTest(steps=steps):
                modes = ["named", "check"] * (24 // steps - 1) + ["named"]
                device = self.periodic(steps, *modes, SIM_SEED=1)
                self.assertGreater(device["prefetches"], whole["prefetches"] * 3 // 4)
                self.assertGreater(device["believed_moves"], 8)

    def test_new_kernel_is_validated_anew(self):
        """Audits do not count for a kernel that was not launched before."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                device = self.periodic(12, "named", "unnamed", allow=[self.FOUND], SIM_SEED=seed)
                self.assertGreater(device["believed_moves"], 0)
                self.assertEqual(device["failed_audits"], 1)

    def test_dropped_content_fails_no_audit(self):
        """Content that the simulated GPU has no room to keep is not compared."""
        for verify in ("off", "on"):
            device = self.periodic(8, "named", allow=["move no data"], status=1, SIM_SEED=1,
                                   SIM_PAYLOAD="80MiB", VERIFY=verify)
            self.assertGreater(device["moves"], 8)
            self.assertEqual(device["failed_audits"], 0)

    def test_unknown_arguments_stop_precopy(self):
        """Nothing can be validated, and most pre-copies are left out. Only a move during which the
        program happens to submit nothing is compared."""
        device = self.periodic(12, "unknown", SIM_SEED=1)
        self.assertLess(device["audits"], 3)
        self.assertEqual(device["believed_moves"], 0)
        self.assertGreater(device["moves"], 16)
        self.assertLess(device["second_copies"], device["moves"])

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
