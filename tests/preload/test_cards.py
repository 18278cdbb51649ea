#!/usr/bin/env python3
"""`spillway fit`: on which GPUs a program fits, and up to which size."""
import json
import re
import signal
import unittest

import harness
from harness import COMMAND, PROGRAMS

PROGRAM = PROGRAMS / "fit"
CARDS = ("t4-16g", "rtx3060-12g", "rtx4090-24g", "a100-40g")
VALUES = ("2", "8", "12", "14", "15", "20", "23", "30")


class Cards(harness.Case):
    def fit(self, *words, flags=(), status=0, cards=CARDS, program=PROGRAM):
        """The result of the command, and the row of each GPU."""
        result = self.run_command([COMMAND, "fit", *(("--gpus", ",".join(cards)) if cards else ()),
                                   *flags, "--", program, *words],
                                  harness.environment(False, False))
        self.assertEqual(result.status, status, result.stdout + result.stderr)
        lines = [line for line in result.stdout.splitlines() if line]
        rows = {line.split()[0]: line for line in lines[1:1 + len(cards or ())]}
        return result, rows

    def runs(self, result):
        return len(re.findall(r"^spillway: fit: run \d+\b", result.stderr, re.MULTILINE))

    def test_one_run_tells_of_all_where_nothing_is_close(self):
        result, rows = self.fit("gib=4", cards=("rtx3060-12g", "rtx4090-24g", "a100-40g"))
        self.assertEqual(self.runs(result), 1)
        for row in rows.values():
            self.assertRegex(row, r" 4\.\d+ GiB - 4\.\d+ GiB +fits, \d+\.\d+ GiB to spare$")

    def test_spilling(self):
        result, rows = self.fit("gib=20", flags=("--json", self.folder / "fit.json"))
        self.assertRegex(rows["t4-16g"], r"runs by spilling [56]\.\d+ GiB; at least")
        self.assertRegex(rows["rtx3060-12g"], r"runs by spilling [89]\.\d+ GiB; at least")
        self.assertRegex(rows["rtx4090-24g"], r" fits, 3\.\d+ GiB to spare$")
        found = json.loads((self.folder / "fit.json").read_text())
        self.assertEqual(found["runs"], self.runs(result))
        self.assertEqual({row["gpu"]: row["verdict"] for row in found["gpus"]},
                         {"t4-16g": "spills", "rtx3060-12g": "spills", "rtx4090-24g": "fits",
                          "a100-40g": "fits"})
        for row in found["gpus"]:
            self.assertGreater(row["need_bytes"], 20 << 30)
            self.assertGreater(row["need_most_bytes"], row["need_bytes"])

    def test_memory_that_a_policy_places_on_the_host(self):
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "h", "match": {"nth": [1, 2, 3]}, "action": {"placement": "host"}}]}))
        flags = ("--policy", policy, "--json", self.folder / "fit.json")
        _, rows = self.fit("gib=13", cards=("rtx3060-12g",), flags=flags)
        self.assertRegex(rows["rtx3060-12g"], r" 10\.\d+ GiB - 10\.\d+ GiB +fits, [.\d]+ GiB to "
                                              r"spare, with 3 GiB placed on the host by the "
                                              r"policy$")
        row, = json.loads((self.folder / "fit.json").read_text())["gpus"]
        self.assertEqual((row["verdict"], row["placed_bytes"], row["spilled_bytes"]),
                         ("fits", 3 << 30, 0))
        _, rows = self.fit("gib=16", cards=("rtx3060-12g",), flags=flags)
        self.assertRegex(rows["rtx3060-12g"], r"runs by spilling 1\.\d+ GiB, with 3 GiB placed on "
                                              r"the host by the policy; at least ")

    def test_smallest(self):
        """The table ends with the answer, unless it is not known of some GPU."""
        least = "; the one with the least memory is "
        for words, status, said in (("gib=4", 0, [f"4 of 4 GPUs{least}rtx3060-12g"]),
                                    ("gib=20", 0, [f"2 of 4 GPUs{least}rtx4090-24g"]),
                                    ("gib=60", 0, ["0 of 4 GPUs"]), ("fail", 1, ["0 of 4 GPUs"]),
                                    ("", 0, [])):
            result, _ = self.fit(*words.split(), status=status)
            self.assertEqual(re.findall(r"(?m)^it fits on (.*)$", result.stdout), said, words)

    def test_progress(self):
        """Each run has its place among those that are expected, and the time that is left."""
        result, _ = self.fit("gib=5", cards=("rtx2080-8g", "t4-16g", "a100-40g"))
        lines = [line for line in result.stderr.splitlines() if ": run " in line]
        self.assertEqual(lines[0], "spillway: fit: run 1: a100-40g, with ample memory")
        self.assertRegex(lines[1], r"^spillway: fit: run 2 of about 2, about \d+ s: t4-16g, ")
        result, _ = self.fit("gib={n}", flags=("--vary", "n=1..40"), cards=("rtx4090-24g",))
        lines = [line for line in result.stderr.splitlines() if ": run " in line]
        self.assertRegex(lines[0], r"^spillway: fit: run 1 of about 6: rtx4090-24g, n 21, ")
        for number, line in enumerate(lines[1:5], 2):
            self.assertRegex(line, rf"^spillway: fit: run {number} of about 6, about \d+ s: ")

    def test_without_the_pool_nothing_spills(self):
        _, rows = self.fit("gib=20", flags=("--no-pool",))
        self.assertRegex(rows["t4-16g"], r" does not fit$")
        self.assertRegex(rows["rtx4090-24g"], r" fits, ")

    def test_what_is_required(self):
        said = "spillway: fit: --require is not met, so the exit code is 1\n"
        for flags, status in ((("--require", "fit"), 1), (("--require", "spill"), 0), ((), 0)):
            with self.subTest(flags):
                result, _ = self.fit("gib=20", flags=flags, status=status)
                self.assertEqual(result.stderr.endswith(said), status == 1, result.stderr)

    def truth(self, card, value):
        """True if a run on the simulated card itself succeeds without spilling."""
        result = self.run_command([COMMAND, "sim", "--profile", card, "--overhead", "on", "--spill",
                                   "off", "--", PROGRAM, f"gib={value}"],
                                  harness.environment(False, False))
        return result.status == 0

    def test_largest_value_is_what_trying_each_gives(self):
        _, rows = self.fit("gib={n}", flags=("--vary", "n=" + ",".join(VALUES)))
        for card, row in rows.items():
            with self.subTest(card):
                good = [value for value in VALUES if self.truth(card, value)]
                self.assertEqual(row.split()[3], good[-1], row)
                if good[-1] != VALUES[-1]:
                    self.assertIn(f"; {VALUES[len(good)]} does not fit", row)

    def test_no_value_fits(self):
        result, rows = self.fit("gib={n}", flags=("--vary", "n=40,60"), cards=("a100-40g",))
        self.assertEqual(rows["a100-40g"].split()[3], "none")
        self.assertRegex(result.stdout, r"(?m)^60 +a100-40g +60\.\d+ GiB")

    def test_range(self):
        """Each number of it is a value, and bisection tries a few."""
        result, rows = self.fit("gib={n}", flags=("--vary", "n=8,10..40,60"),
                                cards=("rtx3090-24g",))
        self.assertEqual(rows["rtx3090-24g"].split()[3], "23")
        self.assertIn("; 24 does not fit", rows["rtx3090-24g"])
        self.assertIn("\n\nwhat each value that was run needs, without a limit:\nn ", result.stdout)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_value_that_fails(self):
        """What the command says last is told, and that it is not a matter of memory."""
        script = ('[ $0 = 4 ] || { echo "ValueError: no batch of $0" >&2; exit 9; }; '
                  f"exec {PROGRAM} gib=$0")
        result, rows = self.fit("-c", script, "{n}", flags=("--vary", "n=4,x"), program="sh",
                                cards=("a100-40g",))
        self.assertIn("; with x it fails", rows["a100-40g"])
        self.assertRegex(result.stdout, r"(?m)^x .*  the command fails \(exit code 9\): "
                                        "ValueError: no batch of x$")
        result, _ = self.fit("-c", script, "{n}", flags=("--vary", "n=y"), program="sh",
                             cards=("a100-40g",), status=1)
        self.assertIn("the command fails on every GPU (exit code 9): ValueError: no batch of y; "
                      "spillway sim shows its output\n", result.stderr)

    def test_program_that_fails(self):
        result, rows = self.fit("fail", status=1, cards=("a100-40g", "h100-80g"))
        self.assertIn("the command fails there (exit code 3)", rows["h100-80g"])
        self.assertIn("the command fails on every GPU (exit code 3); spillway sim shows its output",
                      result.stderr)
        result, _ = self.fit(status=127, program="/no/such/program")
        self.assertIn("spillway: fit: /no/such/program: not found\n", result.stderr)

    def test_program_that_uses_no_device(self):
        """That says nothing of a card."""
        path = self.folder / "fit.json"
        result, rows = self.fit(cards=("l4-24g",), status=1,
                                flags=("--require", "fit", "--json", path))
        self.assertRegex(rows["l4-24g"], " the command used no device$")
        self.assertIn("--require is not met", result.stderr)
        self.assertEqual(json.loads(path.read_text())["gpus"][0]["verdict"], "unused")

    def test_interrupted(self):
        """No more runs, and what is known."""
        result, _ = self.fit("gib=4", "interrupt", status=128 + signal.SIGINT)
        self.assertEqual(self.runs(result), 1)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_interrupted_twice(self):
        """What happens to a run is told, although its output is not shown."""
        script = "trap : INT; kill -INT $PPID; sleep 3; kill -INT $PPID; while :; do :; done"
        result, _ = self.fit("-c", script, program="sh", status=128 + signal.SIGINT)
        self.assertIn("spillway: killed by the second Ctrl-C\n", result.stderr)

    def test_bad_usage(self):
        for flags, message in (
                (("--gpus", "rtx409"), r"--gpus: rtx409 is not the name of a GPU \(expected "
                                       r"rtx4090-\S+"),
                (("--gpus", "V100"), r"--gpus: V100 is not the name of a GPU \(expected v100-16g "
                                     r"or v100-32g\)"),
                (("--gpus", "t4-16g,"), r"--gpus: a name is empty \(expected NAME,NAME"),
                (("--vary", "bs=1,2"), r"--vary: \{bs\} is not in the command: write \{bs\} where"),
                (("--vary", "n=4..1"), r"--vary: 4\.\.1 goes down \(expected the least first: "
                                       r"1\.\.4\)"),
                (("--vary", "n=1..100"), "--vary: more than 64 values"),
                (("--vary", "bs"), r"--vary=bs: no name and values \(expected NAME=VALUE"),
                (("--vary", "n=1,,2"), r"--vary: a value is empty"),
                (("--cudnn", "9.99"), r"--cudnn=9\.99: not found in \S+ .*: pip install --no-deps "
                                      r"--target '\S+/cudnn/9\.99' 'nvidia-cudnn-cu13==9\.99\.\*'"),
                (("--cudnn", "/nowhere"), r"--cudnn=/nowhere: there is no libcudnn\.so\.9 \("),
                (("--memory", "1GiB"), r"--memory")):
            with self.subTest(flags):
                result = self.run_command([COMMAND, "fit", *flags, "--", PROGRAM, "gib={n}"],
                                          harness.environment(False, False))
                self.assertEqual((result.status, result.stdout), (2, ""))
                self.assertRegex(result.stderr, r"^spillway: fit: " + message)
                self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    harness.main()
