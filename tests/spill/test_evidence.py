#!/usr/bin/env python3
"""Write validation: a kernel counts as writing only through its arguments after enough checks."""
import re

from spill import LONG, PATIENT, SEEDS, SPILL_LINE
import harness

PERIODIC = harness.ROOT / "tests/spill/periodic"
ILLEGAL_ADDRESS = 700


class Evidence(harness.Case):
    """The program of which every step is like the others."""
    FOUND = r"a kernel wrote to memory that no argument names"

    def periodic(self, steps, *modes, allow=(), status=0, **options):
        """The program checks its content."""
        options = {"SIM_MEMORY": "64MiB", **PATIENT, **options}
        self.result = self.run_program(PERIODIC, steps, *modes, status=status,
                                       allow=[SPILL_LINE, *allow], **options)
        device = self.result.device()
        self.assertEqual(device["ooms"], 0)
        for gauge in ("live_bytes", "committed_bytes", "host_bytes") if status == 0 else ():
            self.assertEqual(device[gauge], 0, gauge)
        return device

    def test_earned(self):
        """After validation, memory that no argument names is copied once, except in one move of
        sixteen."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                short = self.periodic(10, "named", SIM_SEED=seed)
                long = self.periodic(30, "named", SIM_SEED=seed)
                self.assertGreaterEqual(short["audits"], 4)
                self.assertLess(short["audits"], short["believed_moves"])
                self.assertGreater(long["believed_moves"], short["believed_moves"] + 16)
                later = long["believed_moves"] - short["believed_moves"]
                self.assertLessEqual(long["audits"] - short["audits"], 1 + later / 15)
                self.assertEqual(long["failed_audits"], 0)

    def test_found(self):
        """A kernel that reads addresses from memory: reported once, and no content is lost, then or
        later."""
        kinds = ({"SIM_SEED": 1, "CHECK": "on", "VERIFY": "on"}, {"SIM_SEED": 2},
                 {"SIM_SEED": 3, "SIM_UNMAP": "chunk"})
        for options in kinds if LONG else kinds[:1]:
            with self.subTest(**options):
                device = self.periodic(12, "unnamed", allow=[self.FOUND], **options)
                lines = [line for line in self.result.said() if re.search(self.FOUND, line)]
                self.assertEqual(len(lines), 1, self.result.stderr)
                self.assertRegex(lines[0], r"to the block of 3\.\d+ MiB at 0x\w+ \(.*periodic.*\)\."
                                           r" Its move lost nothing.*held back$")
                self.assertEqual((device["failed_audits"], device["believed_moves"]), (1, 0))
                self.assertGreater(device["moves"], 4)

    def test_others_do_not_look(self):
        """The careful mode loses nothing and the trusting one does: audits exist to find that."""
        for overlap in ("careful", "off"):
            device = self.periodic(8, "unnamed", SIM_SEED=1, OVERLAP=overlap)
            self.assertEqual((device["audits"], device["believed_moves"]), (0, 0))
        self.assertTrue(any(self.loses(seed) for seed in range(1, 6)))

    def loses(self, seed):
        """It is chance whether a kernel writes to memory while it is being moved."""
        self.periodic(8, "unnamed", SIM_SEED=seed, OVERLAP="trust", status=None,
                      allow=["does not give back access"])
        if self.result.status == 0:
            return False
        self.assertRegex(self.result.stdout, f"words wrong|= {ILLEGAL_ADDRESS}$")
        return True

    def test_another_order(self):
        """Validation of one order of kernels does not extend to another order."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                device = self.periodic(10, "named", "otherwise", SIM_SEED=seed)
                self.assertGreaterEqual(device["audits"], 8)
                self.assertGreater(device["believed_moves"], 8)

    def test_interrupted(self):
        """Steps are moved ahead of after a check as before it, however many lie between two: not
        all of them together are taken for a step."""
        whole = self.periodic(24, "named", SIM_SEED=1)
        for steps in (12, 3):
            with self.subTest(steps=steps):
                modes = ["named", "check"] * (24 // steps - 1) + ["named"]
                device = self.periodic(steps, *modes, SIM_SEED=1)
                self.assertGreater(device["prefetches"], whole["prefetches"] * 3 // 4)
                self.assertGreater(device["believed_moves"], 8)

    def test_another_kernel(self):
        """Nor does it extend to kernels that were not launched before."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                device = self.periodic(12, "named", "unnamed", allow=[self.FOUND], SIM_SEED=seed)
                self.assertGreater(device["believed_moves"], 0)
                self.assertEqual(device["failed_audits"], 1)

    def test_content_that_is_not_kept(self):
        """Content that the simulated GPU does not keep proves nothing, and causes no report."""
        for verify in ("off", "on"):
            device = self.periodic(8, "named", allow=["move no data"], status=1, SIM_SEED=1,
                                   SIM_PAYLOAD="80MiB", VERIFY=verify)
            self.assertGreater(device["moves"], 8)
            self.assertEqual(device["failed_audits"], 0)

    def test_unknown_arguments(self):
        """Nothing can be found out, and most first copies are not made."""
        device = self.periodic(12, "unknown", SIM_SEED=1)
        self.assertEqual((device["audits"], device["believed_moves"]), (0, 0))
        self.assertGreater(device["moves"], 16)
        self.assertLess(device["second_copies"], device["moves"])


if __name__ == "__main__":
    harness.main()
