#!/usr/bin/env python3
"""Files that the command and the object write: never through a link of another user, always where
the user's own links and devices lead."""
import json
import os
import signal
import threading
import unittest

import harness
from harness import COMMAND, PROGRAMS

NOBODY = 65534
REFUSED = "Permission denied (it is a symbolic link of another user)"
PROGRAM = ("--", PROGRAMS / "fit", "take")
# What is written, and the arguments that have it written to the path behind them.
SIM = ("sim", "--summary", "off")
OUTPUTS = {
    "sim --json": (*SIM, "--json"),
    "fit --json": ("fit", "--gpus", "h100-80g", "--json"),
    "advise --json": ("advise", "--budget", "1GiB", "--json"),
    "sim --sim-log": (*SIM, "--sim-log"),
    "sim --stats": (*SIM, "--stats"),
    "sim --record": (*SIM, "--record"),
}


class Outputs(harness.Case):
    def spillway(self, *words, status=0, **options):
        result = self.run_command([COMMAND, *words], harness.environment(False, False, **options))
        self.assertEqual(result.status, status, f"{words}\n{result.stdout}{result.stderr}")
        return result

    def inputs(self):
        """A recording, and the statistics of it."""
        record, stats = self.folder / "r.rec", self.folder / "s.json"
        self.spillway(*SIM, "--record", record, "--stats", stats, *PROGRAM)
        return record, stats


@unittest.skipIf(os.geteuid() != 0, "only root can make a link of another user")
class LinksOfOthers(Outputs):
    def setUp(self):
        super().setUp()
        self.open, own = self.folder / "open", self.folder / "own"
        self.open.mkdir()
        self.open.chmod(0o777)
        own.mkdir(0o700)
        self.precious, self.new = own / "precious", own / "new"
        self.precious.write_text("precious")

    def links(self):
        """Links of nobody's, to a file and to none."""
        for target in self.precious, self.new:
            link = self.open / target.name
            link.unlink(missing_ok=True)
            link.symlink_to(target)
            os.lchown(link, NOBODY, NOBODY)
            yield link

    def check(self):
        self.assertEqual(self.precious.read_text(), "precious")
        self.assertFalse(self.new.exists())

    def test_outputs_of_runs(self):
        refused = {"sim --json": "sim: --json=", "fit --json": "fit: --json=",
                   "advise --json": "advise: "}
        for name, words in OUTPUTS.items():
            for link in self.links():
                with self.subTest(name, link=link.name):
                    result = self.spillway(*words, link, *PROGRAM, status=int(name in refused))
                    self.check()
                    if name in refused:
                        self.assertIn(f"spillway: {refused[name]}{link}: {REFUSED}\n",
                                      result.stderr)
                    elif name == "sim --sim-log":
                        self.assertIn(f"{link}: cannot be written: {REFUSED}\n", result.stderr)

    def test_log(self):
        for link in self.links():
            result = self.spillway(*SIM, *PROGRAM, LOG=f"debug:{link}")
            self.check()
            self.assertIn(f"cannot open {link}: {REFUSED}; logging to stderr\n", result.stderr)

    def test_outputs_from_files(self):
        record, stats = self.inputs()
        for link in self.links():
            result = self.spillway("check", stats, "--max-peak", "1GiB", "--junit", link, status=1)
            self.check()
            self.assertIn(f"spillway: check: --junit={link}: {REFUSED}\n", result.stderr)
            result = self.spillway("report", record, "--json", "--output", link, status=2)
            self.check()
            self.assertIn(f"--output={link}: File exists\n", result.stderr)


@unittest.skipIf(os.geteuid() != 0, "only root can give up its rights")
class GivenUpRights(Outputs):
    def test_launcher_writes_only_what_was_asked_for(self):
        """With the rights of nobody, the program replaces the paths in the memory that it shares,
        and is killed. What root writes then, nobody must not choose."""
        own = self.folder / "own"
        own.mkdir(0o700)
        record, stats, other = own / "r.rec", own / "s.json", own / "other.rec"
        self.run_program(PROGRAMS / "fit", "take", RECORD=other)
        before, new = other.read_bytes(), own / "new"
        self.assertTrue(before)
        for _ in range(2):  # the second time over the statistics of the first
            result = self.spillway(
                *SIM, "--record", record, "--stats", stats, "--", PROGRAMS / "drops_rights",
                record, other, stats, new, status=128 + signal.SIGKILL)
            self.assertEqual(other.read_bytes(), before)
            self.assertEqual({path.name for path in own.iterdir()},
                             {"r.rec", "s.json", "other.rec"})
            self.assertEqual(json.loads(stats.read_text())["devices"][0]["allocs"], 1)
            self.assertNotIn("does not hold", result.stderr)


class OwnPaths(Outputs):
    def test_own_link(self):
        link, target = self.folder / "link", self.folder / "target"
        link.symlink_to(target)
        self.spillway(*SIM, "--json", link, *PROGRAM)
        self.assertEqual(json.loads(target.read_text())["verdict"], "fits")
        self.assertTrue(link.is_symlink())

    def test_streams_and_devices(self):
        for path in "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
            result = self.spillway(*SIM, "--json", path, *PROGRAM)
            self.assertEqual(json.loads(result.stdout.removeprefix("take\n"))["verdict"], "fits")
        self.spillway(*SIM, "--json", "/dev/null", *PROGRAM)
        _, stats = self.inputs()
        result = self.spillway("check", stats, "--max-peak", "1GiB", "--junit", "/dev/stderr")
        self.assertIn("</testsuites>", result.stderr)

    def test_pipe(self):
        path, texts = self.folder / "pipe", []
        os.mkfifo(path)
        reader = threading.Thread(target=lambda: texts.append(path.read_text()))
        reader.start()
        self.spillway(*SIM, "--json", path, *PROGRAM)
        reader.join()
        self.assertEqual(json.loads(texts[0])["verdict"], "fits")


if __name__ == "__main__":
    harness.main()
