#!/usr/bin/env python3
"""Threads with small stacks run under spillway as they run bare, and so does the command."""
import json
import resource
import subprocess

import harness
from harness import COMMAND, MIB, OBJECT, PROGRAMS

PROGRAM = PROGRAMS / "small_stacks"
KIB = (17, 20, 28)
TOLD = ["out of memory on device 0", "is full: for a block", "spillway:  "]


def with_stack(kib):
    """Limits the stack of a process that is about to start."""
    return lambda: resource.setrlimit(resource.RLIMIT_STACK, (kib << 10, kib << 10))


class Threads(harness.Case):
    def setUp(self):
        super().setUp()
        if harness.SANITIZED:
            self.skipTest("sanitizers need more stack")
        self.policy = self.folder / "policy.json"
        self.policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "never", "match": {"native": {"symbol": "no_such_function"}},
             "action": {"placement": "host"}}]}))

    def check(self, *work, memory="64MiB", **options):
        """The same output as bare, on a device that has room, for each size of the stack."""
        for kib in KIB:
            with self.subTest(kib=kib, work=work, **options):
                bare = self.run_program(PROGRAM, kib, *work, preload=False, SIM_MEMORY="2GiB")
                ours = self.run_program(PROGRAM, kib, *work, SIM_MEMORY=memory, allow=TOLD,
                                        **options)
                self.assertEqual(bare.stdout, ours.stdout)
        return ours

    def test_allocate_and_free(self):
        self.check("use", memory="2GiB")
        self.check("first", "use", memory="2GiB")

    def test_spilling(self):
        for options in ({"SITES": "off"}, {"SITES": "both"}, {"OVERLAP": "off"}):
            ours = self.check("many", **options)
            self.assertGreater(ours.device()["spilled_bytes"], 20 * MIB)

    def test_policy_and_recording(self):
        self.check("use", POLICY=self.policy)
        record = self.folder / "record"
        self.check("many", POLICY=self.policy, RECORD=record, RECORD_USES="on")
        self.assertTrue(record.exists())

    def test_report_of_out_of_memory(self):
        ours = self.check("fill", memory="512MiB", SPILL="off", SITES="both")
        self.assertEqual(ours.device()["ooms"], 1)
        self.assertIn("held by 1 call site:", ours.reports()[0])

    def test_call_sites_are_captured(self):
        """But not where libunwind would use up the stack: that call site is not known."""
        for work, known in (("take", True), ("deep", False)):
            ours = self.run_both(PROGRAM, 28, work, SIM_MEMORY="2GiB", SITES="native")
            (site,) = ours.stats["sites"]
            self.assertEqual(site["total_bytes"], 5 * MIB)
            self.assertEqual(bool(site.get("native")), known, site)


class Command(harness.Case):
    def run_small(self, kib, *words):
        done = subprocess.run([str(word) for word in (COMMAND, *words)], capture_output=True,
                              text=True, preexec_fn=with_stack(kib), cwd=self.folder, timeout=60,
                              env=harness.environment(False, False))
        self.assertIn(done.returncode, range(128), f"{words}\n{done.stdout}{done.stderr}")
        return done

    def test_small_stack(self):
        if harness.SANITIZED:
            self.skipTest("sanitizers need more stack")
        done = self.run_small(64, "sim", "--memory", "1GiB", "--record", "record", "--stats",
                              "stats.json", "--", PROGRAM, 64, "use")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in (("report", "record"), ("report", "record", "--html"),
                      ("sites", "stats.json"), ("diff", "stats.json", "stats.json"),
                      ("check", "stats.json", "--max-peak", "1KiB"), ("top", "--once"),
                      ("policy", "suggest", "stats.json"), ("policy", "keys"), ("options",),
                      ("advise", "record", "--budget", "20MiB"),
                      ("advise", "--budget", "64MiB", "--", PROGRAM, 64, "use"),
                      ("fit", "--", PROGRAM, 64, "use"), ("ranks", "stats.json", "stats.json"),
                      ("doctor",)):
            with self.subTest(words):
                done = self.run_small(128, *words)
                self.assertNotEqual(done.stdout + done.stderr, "")


if __name__ == "__main__":
    harness.main()
