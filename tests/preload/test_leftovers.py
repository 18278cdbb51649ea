#!/usr/bin/env python3
"""Run folders that killed launchers leave: the next launcher removes them, and nothing else."""
import os
import pathlib
import signal
import subprocess
import unittest

import harness
from harness import COMMAND, PROGRAMS

NOBODY = 65534
NOTE = ".launcher"


class Leftovers(harness.Case):
    def start(self, count=1):
        """Runs `spillway sim` so many times at once; leftovers may be in self.folder."""
        env = harness.environment(False, False) | {"TMPDIR": str(self.folder)}
        running = [subprocess.Popen([COMMAND, "sim", "--", PROGRAMS / "exits", "exit"], env=env,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                   for _ in range(count)]
        for process in running:
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 3, err)
            self.assertNotIn("cannot", err)

    def make(self, name, note=True):
        folder = self.folder / f"spillway-{name}"
        folder.mkdir(0o700)
        for file in ["123", "sim-123"] + [NOTE] * note:
            (folder / file).write_text("")
        (folder / "123.statistics").symlink_to(self.folder / "precious")
        return folder

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_killed_launcher(self):
        """Its folder stays while it lives, and then while a process of the run lives."""
        launcher = subprocess.Popen(
            [COMMAND, "sim", "--", "sh", "-c", "echo $SPILLWAY_RUN_DIR $$; exec sleep 100"],
            env=harness.environment(False, False), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        folder, program = launcher.stdout.readline().split()
        folder = pathlib.Path(folder)
        self.start()
        self.assertTrue(folder.is_dir())
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
        self.start()
        self.assertTrue(folder.is_dir())
        os.kill(int(program), signal.SIGKILL)
        self.assertEqual(launcher.stdout.read(), "")  # the program has ended, too
        launcher.stdout.close()
        self.start()
        self.assertFalse(folder.exists())

    def test_what_is_removed(self):
        """Only an own folder, with a file that nobody holds locked: no pid decides."""
        left, unknown, other = self.make("aaaaaa"), self.make("bbbbbb", note=False), \
            self.make("no-such-length")
        precious, shared = self.folder / "precious", self.make("cccccc")
        precious.write_text("")
        shared.chmod(0o770)
        target = self.make("the-target")
        (self.folder / "spillway-dddddd").symlink_to(target)
        (self.folder / "spillway-eeeeee").write_text("")
        kept = {path.name for path in self.folder.iterdir()} - {left.name}
        if os.geteuid() == 0:
            foreign = self.make("ffffff")
            os.chown(foreign, NOBODY, NOBODY)
            kept.add(foreign.name)
        self.start()
        self.assertEqual({path.name for path in self.folder.iterdir()}, kept)
        for folder in unknown, other, shared, target:
            self.assertTrue((folder / "sim-123").exists(), folder)

    def test_several_at_once(self):
        for number in range(40):
            self.make(f"{number:06}")
        self.start(count=4)
        self.start()
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    harness.main()
