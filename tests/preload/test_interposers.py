#!/usr/bin/env python3
"""Interposers of others, before and behind ours. One before is between the program and spillway;
one behind is between spillway and the driver, and what it bounds stays bounded."""
import re

import harness
from harness import MIB, OBJECT, PROGRAMS

BLOCK, QUOTA, ASKED = 4 * MIB, 64 * MIB, 32
LINKED, UNLINKED = PROGRAMS / "interposed_linked", PROGRAMS / "interposed"
COUNTS, PLAIN = PROGRAMS / "libcounts.so", PROGRAMS / "libquota.so"
# These have no dlsym of their own: only a program that is linked with the driver meets them.
EXPORTING = [PROGRAMS / "libquota_exports.so", PROGRAMS / "libquota_handle.so"]


@harness.unittest.skipIf(harness.SANITIZED, "a sanitizer's runtime goes first")
class Interposers(harness.Case):
    def run_with(self, program, *libraries, **options):
        """The program's output and the last line of the interposer."""
        ours = OBJECT in libraries
        if ours:
            options = {"SUMMARY": "off", "STATS": self.folder / "s.json", **options}
        env = harness.environment(preload=False, **options)
        env["LD_PRELOAD"] = ":".join(map(str, libraries))
        result = self.run_command([program, ASKED], env, timeout=60)
        self.assertEqual(result.status, 0, result.stderr)
        if ours and options.get("") != "off":
            self.device = harness.json.loads((self.folder / "s.json").read_text())["devices"][0]
            self.seen = self.device["allocs"] + self.device["passed_allocs"]
        said = re.search(r"^(?:quota|counted): .*$", result.stderr, re.MULTILINE)
        return result.stdout, said.group() if said else ""

    def peak(self, said):
        return int(re.search(r"peak (\d+) MiB", said).group(1)) * MIB

    def all_blocks(self, stdout):
        self.assertEqual(stdout, 2 * f"blocks: {ASKED}, the next one: 0, wrong: 0\n")

    def test_one_that_counts(self):
        """It counts the same, wherever it stands, and the program's blocks are spillway's."""
        for program in LINKED, UNLINKED:
            bare = self.run_with(program, COUNTS)
            self.all_blocks(bare[0])
            for options in {}, {"LIMIT": QUOTA}, {"MODE": "observe"}:
                with self.subTest(program=program.name, **options):
                    self.assertEqual(self.run_with(program, COUNTS, OBJECT, **options), bare)
                    self.assertEqual(self.seen, 2 * ASKED)
                    self.assertEqual(self.device["runtime_missed"], 0)
                    self.all_blocks(self.run_with(program, OBJECT, COUNTS, **options)[0])
                    self.assertEqual(self.seen, 2 * ASKED)

    def test_quota_before(self):
        """The program is refused what it is refused without spillway, which has what is allowed."""
        for program in LINKED, UNLINKED:
            bare, said = self.run_with(program, PLAIN)
            self.assertIn("refused some", said)
            for options in {}, {"MODE": "observe"}:
                with self.subTest(program=program.name, **options):
                    self.assertEqual(self.run_with(program, PLAIN, OBJECT, **options), (bare, said))
                    self.assertEqual(self.seen, 2 * QUOTA // BLOCK)

    def check_behind(self, program, library):
        """The limit is the quota: what goes beyond is on the host."""
        for limit in QUOTA, QUOTA // 2:
            options = {} if limit == QUOTA else {"LIMIT": limit}
            stdout, said = self.run_with(program, OBJECT, library, **options)
            self.all_blocks(stdout)
            self.assertGreater(self.peak(said), 0)
            self.assertLessEqual(self.peak(said), limit)
            self.assertEqual(self.device["limit_bytes"], limit)
            self.assertGreaterEqual(self.device["host_peak_bytes"], ASKED * BLOCK - limit)
            self.assertEqual(self.device["pinned_bytes"], 0)
        stdout, said = self.run_with(program, OBJECT, library, MODE="observe")
        self.assertIn(f"blocks: {QUOTA // BLOCK}, the next one: 2", stdout)
        self.assertEqual(self.peak(said), QUOTA)

    def test_quota_behind(self):
        for program in LINKED, UNLINKED:
            self.check_behind(program, PLAIN)
            self.assertEqual(self.run_with(program, OBJECT, PLAIN, **{"": "off"}),
                             self.run_with(program, PLAIN))

    def test_quota_behind_without_dlsym(self):
        for library in EXPORTING:
            self.check_behind(LINKED, library)
            bare = self.run_with(UNLINKED, library)
            self.assertIn("quota: 0 calls", bare[1])
            self.assertEqual(self.run_with(UNLINKED, OBJECT, library), bare)
            self.assertEqual(self.seen, 2 * ASKED)

    def test_it_is_named(self):
        log = self.folder / "log"
        self.run_with(LINKED, OBJECT, PLAIN, LOG=f"info:{log}")
        self.assertIn(f"{PLAIN} is between spillway and the driver", log.read_text())


if __name__ == "__main__":
    harness.main()
