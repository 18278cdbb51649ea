#!/usr/bin/env python3
"""The three lines that end a run: does it fit, what held the peak, what to do next."""
import json
import os
import pty
import re
import subprocess
import sys
import unittest

import harness
from harness import COMMAND, PROGRAMS

FIT = PROGRAMS / "fit"
COLUMNS = 80
OFF = ("--spill", "off")
BARE = ("--no-pool",)
FITTING = "next: nothing is missing; spillway fit tells which cards it fits on"
# Takes memory in a function of the given name.
SCRIPT = """
import ctypes, sys
cudart = ctypes.CDLL("libcudart.so.13")
def take(size):
    block = ctypes.c_void_p()
    return cudart.cudaMallocAsync(ctypes.byref(block), ctypes.c_size_t(size), None)
take = type(take)(take.__code__.replace(co_name=sys.argv[1], co_filename="train.py"), globals())
assert take(48 << 20) == 0
"""


class Brief(harness.Case):
    def lines(self, *words, flags=(), status=0, command="sim", program=FIT, **options):
        """The three lines, without their beginning."""
        result = self.run_command([COMMAND, command, *flags, "--", program, *words],
                                  harness.environment(False, command == "run", **options))
        self.assertEqual(result.status, status, result.stderr)
        self.assertNotIn("\033", result.stderr)
        said = result.stderr.splitlines()
        begin = [i for i, line in enumerate(said) if line.startswith("spillway: verdict: ")]
        if command == "run" and not begin:
            return []
        self.assertEqual(len(begin), 1, result.stderr)
        found = said[begin[0]:begin[0] + 3]
        for line in found:
            self.assertLessEqual(len(line), COLUMNS, line)
        self.assertEqual(len(said), begin[0] + 3 + ("--require" in flags and status == 1), said)
        return [line.removeprefix("spillway:").strip() for line in found]

    def check(self, found, *patterns):
        self.assertEqual(len(found), 3, found)
        for line, pattern in zip(found, patterns):
            self.assertRegex(line, f"^{pattern}$")

    def test_fits(self):
        words = "take", "take-ordered"
        self.check(self.lines(*words, flags=("--memory", "256MiB")),
                   r"verdict: fits in 256 MiB, 128 MiB to spare \(program alone\)",
                   "peak: 128 MiB live; most: 80 MiB by fit", FITTING)
        self.check(self.lines(*words, flags=("--memory", "256MiB", *BARE)),
                   r"verdict: fits in 256 MiB, 112 MiB to spare \(program alone\)",
                   "peak: 128 MiB live, its cache included", FITTING)
        self.check(self.lines("gib=4", flags=("--memory", "12GiB")),
                   r"verdict: fits in 12 GiB, 7\.[12]\d GiB to spare on each such card",
                   "peak: 4 GiB live; most: 4 GiB by fit", FITTING)
        self.check(self.lines("gib=4", flags=("--profile", "3060")),
                   r"verdict: fits in 11\.63 GiB, 7\.5\d GiB to spare; needs at most 4\.\d+ GiB",
                   "peak: 4 GiB live; most: 4 GiB by fit", FITTING)
        self.check(self.lines("take", flags=("--memory", "1GiB", "--overhead", "on")),
                   r"verdict: fits in 1 GiB, 4\d\d MiB to spare", "peak: 48 MiB live.*", FITTING)

    def test_fits_too_tightly(self):
        self.check(self.lines("gib=22", flags=("--memory", "24GiB", "--require", "fit"), status=1),
                   r"verdict: fits too tightly in 24 GiB: surely on [1-9] of 1\d such cards",
                   "peak: 22 GiB live; most: 22 GiB by fit",
                   r"next: --profile NAME asks about your card; [\d.]+ MiB may spill")
        words = "gib=11", *["take"] * 11
        self.check(self.lines(*words, flags=("--profile", "3060", "--require", "fit"), status=1),
                   r"verdict: fits too tightly in 11\.63 GiB: it needs up to 1[12]\.\d+ GiB",
                   r"peak: 11\.52 GiB live; most: 11 GiB by fit",
                   r"next: a larger card, or a smaller batch; [\d.]+ MiB may spill")
        self.check(self.lines(*words, flags=("--profile", "3060", *BARE)), "verdict: fits too .*",
                   ".*", "next: a larger card, or a smaller batch")

    def test_spills(self):
        self.check(self.lines("take", "take-ordered", flags=("--memory", "96MiB")),
                   "verdict: does not fit in 96 MiB, but runs by spilling 32 MiB",
                   "peak: 128 MiB live; most: 80 MiB by fit",
                   "next: it costs at least 0.53 ms in all; spillway advise may cut that")

    def test_policy(self):
        """Memory that rules place is no spilling, and it is told apart from it."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "h", "match": {"size": {"min": "64MiB"}}, "action": {"placement": "host"}}]}))
        words, flags = ("take", "take-ordered"), ("--policy", policy)
        self.check(self.lines(*words, flags=(*flags, "--memory", "256MiB")),
                   'verdict: fits in 256 MiB, with 80 MiB on the host by rule "h"',
                   "peak: 128 MiB live; most: 80 MiB by fit",
                   "next: drop the policy: it fits too, and saves at least 1.3 ms a read")
        self.check(self.lines(*words, flags=(*flags, "--memory", "96MiB")),
                   'verdict: fits in 96 MiB, with 80 MiB on the host by rule "h"', ".*",
                   "next: nothing; to read those 80 MiB once costs at least 1.3 ms")
        self.check(self.lines(*words, flags=(*flags, "--memory", "32MiB")),
                   r"verdict: does not fit in 32 MiB; runs with \d+ MiB on the host",
                   "peak: 128 MiB live, 80 MiB by rules on the host; most: 80 MiB by fit",
                   "next: .*; spillway advise may cut that")
        policy.write_text(policy.read_text().replace('"h"', f'"{"h" * 60}"'))
        self.check(self.lines(*words, flags=(*flags, "--memory", "96MiB")),
                   "verdict: fits in 96 MiB, with 80 MiB on the host by the policy", ".*", ".*")

    def test_does_not_fit(self):
        memory = str((256 << 20) - 8192)
        for flags, more in ((OFF, "spill off"), (BARE, "no-pool")):
            self.check(self.lines("fill", "fail", flags=("--memory", memory, *flags), status=3),
                       r"verdict: does not fit in 255\.99 MiB: 8 KiB missing for 16 MiB",
                       "peak: 240 MiB live.*",
                       f"next: without --{more}, at least 8 KiB can go to the host")
        self.check(self.lines("take", "take-ordered", status=1,
                              flags=("--memory", "96MiB", "--host-limit", "10MiB")),
                   "verdict: does not fit in 96 MiB: 32 MiB missing for 80 MiB", ".*",
                   "next: a --host-limit above 10 MiB, if the host has it")
        self.check(self.lines("chunks", "fail", flags=("--memory", "96MiB"), status=3), ".*", ".*",
                   "next: spillway sim --compare finds the size that it needs")
        self.check(self.lines("host", "fail", flags=("--host-memory", "1GiB"), status=3),
                   "verdict: does not fit: 1023 GiB of locked host memory missing",
                   "peak: 0 B live",
                   "next: --host-memory with 1023 GiB more, if your machine has it")
        self.check(self.lines("take", flags=("--fail", "cuMemAlloc_v2:1", "--memory", "96MiB",
                                             *BARE), status=1),
                   "verdict: does not fit in 96 MiB: refused, but not for lack of it",
                   "peak: 0 B live", "next: --fail injected it, or the address space was used up")

    def test_continued(self):
        flags = "--memory", "256MiB", *OFF
        self.check(self.lines("fill", flags=flags),
                   "verdict: ended well in 256 MiB, but not with all that it asked for",
                   "peak: 256 MiB live; refused: 16 MiB; most: 256 MiB by fit",
                   "next: without --spill off, at least 16 MiB can go to the host")
        self.check(self.lines("fill", "give", "fill", "give", "much", flags=flags), ".*",
                   "peak: 256 MiB live; refused: 1 GiB.*", ".*")

    def test_failed(self):
        self.check(self.lines("take", "leave", status=4),
                   r"verdict: none: failed \(exit code 4\), not out of memory",
                   "peak: 48 MiB live; most: 48 MiB by fit",
                   "next: read the output of the command itself")
        self.check(self.lines("take", "kill", status=137),
                   r"verdict: none: failed \(exit code 137, signal 9\), not out of memory", ".*",
                   ".*")
        self.check(self.lines("take", "interrupt", status=130),
                   "verdict: none: interrupted; the figures are of the part that ran", ".*", ".*")

    def test_processes(self):
        self.check(self.lines("children", "take"), "verdict: fits .*",
                   "peak: 48 MiB in 2 processes; most: 48 MiB by fit", ".*")
        self.check(self.lines("children-apart", flags=("--devices", "2")), "verdict: fits .*",
                   r"peak: 32 MiB live \(pid \d+, device 1\); most: 32 MiB by fit", ".*")

    @unittest.skipIf(harness.SANITIZED, "Python is not built with the sanitizer")
    def test_long_names(self):
        """The label of a call site ends at one of its parts, or is cut off."""
        for name, shown in (("forward", r"train\.py:\d+ forward"),
                            ("f" * 21, r"train\.py:\d+ f{21}"),
                            ("f" * 200, r"train\.py:\d+ f+\.\.\.")):
            found = self.lines("-c", SCRIPT, name, program=sys.executable)
            self.assertRegex(found[1], f"^peak: 48 MiB live; most: 48 MiB by ({shown})$")

    def test_real_run(self):
        """It ends with the lines if it spilled or failed. Here a simulated GPU stands for one."""
        spilling = {"flags": ("--limit", "90MiB"), "command": "run"}
        words = "take", "take-ordered"
        self.check(self.lines(*words, **spilling),
                   "verdict: does not fit in 90 MiB, but runs by spilling 38 MiB",
                   "peak: 128 MiB live; most: 80 MiB by fit",
                   "next: 38 MiB moved in the whole run; spillway advise may cut that")
        self.assertEqual(self.lines(*words, **spilling, SUMMARY="off"), [])
        self.assertEqual(self.lines(*words, command="run"), [])
        self.assertEqual(self.lines(command="run"), [])
        self.check(self.lines("fill", "kill", flags=("--limit", "64MiB", *OFF), command="run",
                              status=137),
                   "verdict: does not fit in 64 MiB: 16 MiB missing for 16 MiB",
                   "peak: 64 MiB live; most: 64 MiB by fit",
                   "next: without --spill off, at least 16 MiB can go to the host")
        self.check(self.lines("take", "leave", command="run", status=4),
                   r"verdict: none: failed \(exit code 4\), and spillway refused nothing",
                   "peak: 48 MiB live; most: 48 MiB by fit",
                   "next: read the output of the command itself")

    def on_a_terminal(self, *words, **variables):
        """What `sim` writes to a terminal."""
        ours, theirs = pty.openpty()
        env = harness.environment(False, False) | {"TERM": "xterm"} | variables
        env = {name: value for name, value in env.items() if value is not None}
        with subprocess.Popen([COMMAND, "sim", "--memory", "96MiB", *words], env=env,
                              stdout=subprocess.DEVNULL, stderr=theirs) as child:
            os.close(theirs)
            said = b""
            try:
                while part := os.read(ours, 4096):
                    said += part
            except OSError:  # the last writer has closed the terminal
                pass
            child.wait()
        os.close(ours)
        return said.decode()

    def test_colour(self):
        for words, code, word in ((("--", FIT, "take"), 32, "fits"),
                                  (("--", FIT, "take", "take-ordered"), 33, "does not fit"),
                                  ((*OFF, "--", FIT, "fill", "fail"), 31, "does not fit"),
                                  ((*OFF, "--", FIT, "fill"), 33, "ended well"),
                                  (("--", FIT, "take", "fail"), 31, "none")):
            said = self.on_a_terminal(*words, NO_COLOR="")
            self.assertEqual(re.findall("verdict: \033\\[1;(\\d+)m(.*?)\033\\[0m", said),
                             [(str(code), word)], said)
            self.assertEqual(said.count("\033"), 2, said)
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}):
            said = self.on_a_terminal("--", FIT, "take", **variables)
            self.assertIn("verdict: fits in 96 MiB", said)


if __name__ == "__main__":
    harness.main()
