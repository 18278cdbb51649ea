#!/usr/bin/env python3
"""A program changes its folder. What the user named by a relative path is still what was meant at
the start: the object in LD_PRELOAD and what lies beside it, the driver in LD_LIBRARY_PATH, and the
files in variables. Nothing of the new folder is run, loaded or written."""
import os
import shutil
import subprocess
import sys
import unittest

import harness
from harness import COMMAND, MIB, PROGRAMS, ROOT, SOURCE

POLICY = '{"version": 1, "rules": [{"name": "NAME", "match": {}, "action": {"placement": "host"}}]}'
# What is looked for beside the object, and the driver in a relative LD_LIBRARY_PATH. Where that one
# leads, the loader finds other libraries too, with spillway and without.
TRAPS = ("build/lib/libunwind.so.8", "build/lib/libcjson.so.1", "build/libcjson.so.1",
         "build/libspillway.so", "build/sim/libcuda.so.1", "lib/libunwind.so.8", "libunwind.so.8",
         "libcjson.so.1", "libcuda.so.1")


class Folders(harness.Case):
    def setUp(self):
        """The object is build/libspillway.so, from a folder that the program leaves for one which
        has files of the same names."""
        super().setUp()
        (self.folder / "build").symlink_to(ROOT)
        self.there = self.folder / "there"
        for path in TRAPS:
            (self.there / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROGRAMS / "libtrap.so", self.there / path)
        for path in ("spillway", "build/spillway"):
            self.write_script(self.there / path)

    def write_script(self, path):
        path.write_text(f"#!/bin/sh\ntouch {path}.ran\n")
        path.chmod(0o755)

    def environment(self, **options):
        env = harness.environment(SUMMARY="off", SIM_MEMORY="64MiB", **options)
        env["LD_PRELOAD"] = f"build/{harness.OBJECT.name}"
        env["LD_LIBRARY_PATH"] = "build/sim"
        return env

    def check_traps(self):
        self.assertEqual(list(self.there.rglob("*.ran")), [])

    def wander(self, when, **options):
        result = self.run_command([PROGRAMS / "wanders", when, self.there],
                                  self.environment(**options))
        self.assertEqual((result.status, result.stdout), (0, "done\n"), result.stderr)
        self.check_traps()
        return result

    def test_it_spills(self):
        for when in "before", "after":
            result = self.wander(when, STATS=self.folder / f"{when}.json", SITES="native")
            self.assertEqual([line for line in result.said() if "is full: for a block" not in line],
                             [])
            device = harness.json.loads((self.folder / f"{when}.json").read_text())["devices"][0]
            self.assertGreaterEqual(device["host_bytes"], 32 * MIB)
            self.assertEqual(device["pinned_bytes"], 0)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_the_folder_is_gone(self):
        gone = self.folder / "gone"
        gone.mkdir()
        start = f"cd {gone} && rmdir {gone} && exec {PROGRAMS / 'wanders'} after {self.there}"
        result = self.run_command(["sh", "-c", start],
                                  harness.environment(SUMMARY="off", RECORD="a.spw", LOG="error"))
        self.assertEqual((result.status, result.stdout), (0, "done\n"), result.stderr)
        self.assertEqual(result.said(), [
            "spillway: cannot make the recording a.spw: the folder that it starts from is gone"])

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_it_spills_though_the_folder_is_removed(self):
        start = self.folder / "start"
        start.mkdir()
        stats = self.folder / "stats.json"
        result = self.run_command(
            ["sh", "-c", f"cd {start} && exec {PROGRAMS / 'wanders'} removes {self.there}"],
            harness.environment(SUMMARY="off", SIM_MEMORY="64MiB", STATS=stats))
        self.assertEqual((result.status, result.stdout), (0, "done\n"), result.stderr)
        self.assertFalse(start.exists())
        self.assertEqual([line for line in result.said() if "is full: for a block" not in line], [])
        device = harness.json.loads(stats.read_text())["devices"][0]
        self.assertGreaterEqual(device["host_bytes"], 32 * MIB)

    def test_files_of_variables(self):
        """They are those of the folder in which the process started."""
        (self.folder / "p.json").write_text(POLICY.replace("NAME", "mine"))
        (self.there / "p.json").write_text(POLICY.replace("NAME", "theirs"))
        for folder in self.folder / "run", self.there / "run":
            folder.mkdir()
        for when in "before", "after":
            self.wander(when, RUN_DIR="run", STATS=f"{when}-%p.json", RECORD=f"{when}.spw",
                        POLICY="p.json", LOG=f"info:{when}.log", SIM_LOG=f"{when}-calls.log")
            written, = self.folder.glob(f"{when}-*.json")
            self.assertIn('"mine"', written.read_text())
            self.assertIn("rule", (self.folder / f"{when}.log").read_text())
            self.assertEqual(list((self.there / "run").iterdir()), [])
            for name in f"{when}.spw", f"{when}-calls.log":
                self.assertGreater((self.folder / name).stat().st_size, 0, name)
        self.assertEqual(sorted(path.name for path in self.there.iterdir() if path.is_file()),
                         ["libcjson.so.1", "libcuda.so.1", "libunwind.so.8", "p.json", "spillway"])

    def test_object_without_its_command(self):
        """The reason why nothing moves is told."""
        env = self.environment()
        env["LD_PRELOAD"] = f"{self.folder}/libspillway.so"
        shutil.copy(harness.OBJECT, self.folder)
        result = self.run_command([PROGRAMS / "wanders", "after", self.there], env)
        self.assertEqual(result.stdout, "done\n", result.stderr)
        self.assertIn(f"the command spillway is not beside {self.folder}/libspillway.so: it tests "
                      "where the driver can map host memory", result.stderr)
        self.check_traps()

    @unittest.skipIf(harness.SANITIZED, "Python is not built with the sanitizer")
    def test_package_finds_its_command(self):
        code = ("import os, spillway._command; os.chdir('there'); "
                "print(spillway._command.find_command())")
        env = self.environment() | {"PYTHONPATH": str(SOURCE / "python"), "PATH": ""}
        done = subprocess.run([sys.executable, "-c", code], cwd=self.folder, env=env, text=True,
                              capture_output=True, check=True)
        self.assertEqual(done.stdout.strip(), os.path.realpath(COMMAND))
        self.check_traps()


if __name__ == "__main__":
    harness.main()
