#!/usr/bin/env python3
"""spillway top shows a running program from outside."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import termios
import time

import harness
from harness import COMMAND, MIB, PROGRAMS

PROGRAM = PROGRAMS / "sites"


class Top(harness.Case):
    def start(self, *words, launcher=True):
        """The program, waiting, and its pid."""
        command = [PROGRAM, *words, "wait"]
        if launcher:
            command = [COMMAND, "sim", "--memory", "1GiB", "--summary", "off", "--", *command]
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            env=harness.environment(not launcher, not launcher, SUMMARY="off"))
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), "waiting\n")
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        return process, int(children.read_text()) if launcher else process.pid

    def top(self, *arguments, status=0):
        result = self.run_command([COMMAND, "top", *arguments], harness.environment(False, False))
        self.assertEqual(result.status, status, result.stderr)
        return result

    def test_once(self):
        for launcher in True, False:
            with self.subTest(launcher=launcher):
                _, pid = self.start("take", "peak", launcher=launcher)
                shown = json.loads(self.top(pid, "--once", "--json").stdout)
                self.assertEqual((shown["pid"], shown["process"]), (pid, "sites take"))
                device = shown["devices"][0]
                self.assertEqual(device["live_bytes"], 8 * MIB)
                self.assertEqual(device["live_peak_bytes"], 72 * MIB)
                self.assertEqual(device["per_second"]["allocs"], 0)
                self.assertEqual([(site["bytes"], site["blocks"]) for site in device["sites"]],
                                 [(5 * MIB, 1), (3 * MIB, 1)])
                self.assertEqual(device["sites"][1]["label"], "take_exported in sites")
                text = self.top(pid).stdout
                self.assertRegex(text, r"(?m)^sites take \(pid \d+\), mode auto$")
                self.assertRegex(text, r"(?m)^  live +8 MiB   peak +72 MiB$")
                self.assertRegex(text, r"(?m)^ +3 MiB  37.5 % +1 block   take_exported in sites$")

    def test_each_second(self):
        """On a terminal, until q, Ctrl-C, or the end of the program; the terminal is as before."""
        for ending in "q", "\x03", None:
            with self.subTest(ending=ending):
                process, pid = self.start("take")
                inner, outer = pty.openpty()
                before = termios.tcgetattr(outer)
                top = subprocess.Popen([str(COMMAND), "top", str(pid)], stdin=outer, stdout=outer,
                                       stderr=outer, start_new_session=True,
                                       preexec_fn=self.own_terminal)
                frames = self.read(inner, 2.5)
                self.assertGreaterEqual(frames.count("sites take (pid"), 2)
                if ending is None:
                    process.communicate("\n")
                else:
                    os.write(inner, ending.encode())
                self.assertEqual(top.wait(timeout=10), 0)
                left = self.read(inner, 0.2)
                self.assertEqual("has ended" in left, ending is None)
                self.assertEqual(termios.tcgetattr(outer), before)
                os.close(inner)
                os.close(outer)

    @staticmethod
    def own_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    @staticmethod
    def read(terminal, seconds):
        end, text = time.monotonic() + seconds, ""
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                text += os.read(terminal, 65536).decode(errors="replace")
        return text

    def test_where_there_is_nothing(self):
        sleeper = subprocess.Popen(["sleep", "100"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.send_signal, signal.SIGKILL)
        self.assertIn("does not run under spillway", self.top(sleeper.pid, status=1).stderr)
        process, pid = self.start("take")
        self.assertIn(f"(descendants that do: {pid})", self.top(process.pid, status=1).stderr)
        self.assertIn("there is no process 4194305", self.top(4194305, status=1).stderr)
        try:
            pathlib.Path("/proc/1/maps").read_bytes()
        except PermissionError:
            self.assertIn("process 1 may not be read", self.top(1, status=1).stderr)
        for arguments, said in (((), "expected the number"), (("x",), "expected the number"),
                                (("--what",), "--what is not an option"),
                                (("1", "2"), "2: unexpected argument")):
            self.assertIn(said, self.top(*arguments, status=2).stderr)
        self.assertTrue(re.match("usage: spillway top PID", self.top("--help").stdout))


if __name__ == "__main__":
    harness.main()
