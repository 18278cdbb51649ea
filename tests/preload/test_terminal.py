#!/usr/bin/env python3
"""spillway top in a real terminal: tmux, of several sizes. Skipped where there is no tmux."""
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest

import harness
from harness import COMMAND, PROGRAMS

KEYS = "q: quit"
COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-7])[0-9;]*m")


@unittest.skipUnless(shutil.which("tmux"), "no tmux")
class Terminal(harness.Case):
    def setUp(self):
        super().setUp()
        self.programs = [self.start(rank) for rank in range(3)]
        self.pids = [pid for _, pid in self.programs]
        self.server = None

    def start(self, rank):
        """A program that waits, by a name that no other one has; and its pid."""
        name = self.folder / f"mine{rank}"
        os.symlink(PROGRAMS / "sites", name)
        process = subprocess.Popen(
            [str(name), "take", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            env={**harness.environment(SUMMARY="off"), "RANK": str(rank)})
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), "waiting\n")
        return process, process.pid

    def tmux(self, *arguments, check=True):
        environment = {key: value for key, value in harness.environment(False, False).items()
                       if key not in ("TMUX", "NO_COLOR")}
        socket = f"spillway-{os.getpid()}-{self.server}"
        done = subprocess.run(["tmux", "-L", socket, "-f", "/dev/null", *map(str, arguments)],
                              capture_output=True, text=True, timeout=30, env=environment,
                              check=False)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def open(self, columns, rows, *arguments, before=""):
        """A shell in a terminal of that size, with the command in it."""
        if self.server is not None:
            self.tmux("kill-server", check=False)
        self.server = next(self.numbers)
        self.addCleanup(self.tmux, "kill-server", check=False)
        # LeakSanitizer never ends where a hang-up interrupts it.
        self.tmux("new-session", "-d", "-x", columns, "-y", rows, "-s", "s",
                  "env PS1='$ ' LSAN_OPTIONS=detect_leaks=0 sh")
        self.wait_for(lambda lines: "$" in lines)  # what is typed before is echoed at another place
        words = " ".join(map(str, (COMMAND, "top", *arguments)))
        self.send(f"{before} {words}; echo ended $?", "Enter")

    def send(self, *keys):
        self.tmux("send-keys", "-t", "s", *keys)

    def screen(self, *arguments):
        return self.tmux("capture-pane", "-p", "-t", "s", *arguments)

    def wait_for(self, what, seconds=30):
        """The screen as soon as `what` is true of its lines."""
        end = time.monotonic() + seconds
        while True:
            lines = self.screen().splitlines()
            if what(lines):
                return lines
            if time.monotonic() > end:
                self.fail("\n".join(lines))
            time.sleep(0.1)

    def wait_for_keys(self, text=KEYS):
        return self.wait_for(lambda lines: any(text in line for line in lines))

    def marked(self, lines):
        return [line for line in lines if line.startswith(">")]

    def test_list_and_one_process(self):
        self.open(120, 30, "--sort", "pid")
        lines = self.wait_for_keys()
        self.assertRegex(lines[0], r"processes under spillway, by pid$")
        for heading in "PID", "RANK", "MODE", "LIVE", "HOST", "MOVED/S", "PROCESS":
            self.assertIn(heading, lines[1].split())
        own = [line for line in lines if re.search(r"\bmine\d\b", line)]
        self.assertEqual([re.search(r"mine\d", line)[0] for line in own],
                         ["mine0", "mine1", "mine2"])
        for _ in range(40):  # others may be above
            if "mine1" in self.marked(self.wait_for(self.marked))[0]:
                break
            before = self.marked(self.screen().splitlines())
            self.send("Down")
            self.wait_for(lambda lines, old=before: self.marked(lines) not in ([], old))
        self.send("Enter")
        lines = self.wait_for(lambda lines: f"(pid {self.pids[1]}" in lines[0])
        self.assertIn(f"mine1 take (pid {self.pids[1]}, rank 1), simulated GPU, mode auto",
                      lines[0])
        self.assertTrue(any(re.search(r"BYTES +SHARE +BLOCKS +SITE", line) for line in lines))
        self.assertTrue(any("take_exported in" in line for line in lines))
        self.assertTrue(any(re.search(r"\[#*=*\.+\] +\d+ %", line) for line in lines))
        self.send("Escape")
        lines = self.wait_for_keys("enter: show")
        self.assertIn("mine1", self.marked(lines)[0])
        self.send("Enter")
        self.wait_for(lambda lines: f"(pid {self.pids[1]}" in lines[0])
        self.programs[1][0].communicate("\n")  # the process that is shown ends: back to the list
        self.wait_for(lambda lines: any("enter: show" in line for line in lines) and
                      not any("mine1" in line for line in lines))
        self.send("q")
        lines = self.wait_for(lambda lines: "ended 0" in lines)
        self.assertFalse(any(KEYS in line for line in lines), lines)
        self.send("stty -a", "Enter")
        self.wait_for(lambda lines: re.search(r"(?<!-)\bicanon\b", " ".join(lines)) and
                      re.search(r"(?<!-)\becho\b", " ".join(lines).split("stty -a")[-1]))

    def test_sizes(self):
        """The head and the keys are always on the screen, and no line wraps."""
        pid = self.pids[0]
        for columns, rows in (60, 16), (80, 24), (40, 10), (24, 6), (200, 5):
            for arguments in (), (pid,):
                with self.subTest(columns=columns, rows=rows, arguments=arguments):
                    self.open(columns, rows, *arguments)
                    lines = self.wait_for(lambda lines: len(lines) == rows and
                                          lines[-1].strip() and lines[0].strip())
                    self.wait_for(lambda lines: re.match(
                        r"mine0 take" if arguments else r"\d+ process", lines[0]))
                    self.assertLessEqual(max(map(len, lines)), columns)
                    self.assertRegex(lines[-1], r"arrows|more below")
        for column, width in (("MODE", 80), ("RANK", 60)):
            self.open(width, 24)
            self.assertIn(column, self.wait_for_keys()[1].split())

    def test_scrolling(self):
        self.open(60, 9, self.pids[0])
        lines = self.wait_for_keys("more below")
        self.assertFalse(any("take_exported" in line for line in lines))
        self.send("End")
        lines = self.wait_for(lambda lines: any("take_exported" in line for line in lines))
        self.assertIn("mine0 take", lines[0])
        self.assertNotIn("more below", lines[-1])
        time.sleep(1.5)  # a frame later it is still so
        self.assertIn("take_exported", self.screen())
        self.send("Home")
        self.wait_for_keys("more below")

    def test_another_size(self):
        self.open(100, 20, self.pids[0])
        self.wait_for_keys()
        self.tmux("resize-window", "-t", "s", "-x", "50", "-y", "8")
        lines = self.wait_for(lambda lines: len(lines) == 8 and "more below" in lines[-1])
        self.assertIn("mine0 take", lines[0])

    def test_colours(self):
        for before, coloured in (("", True), ("NO_COLOR=1", False), ("NO_COLOR=", True)):
            self.open(100, 20, self.pids[0], before=before)
            self.wait_for_keys()
            self.assertEqual(bool(COLOUR.search(self.screen("-e"))), coloured, before)
        self.open(100, 20, before="TERM=dumb")
        lines = self.wait_for(lambda lines: "ended 0" in lines)
        self.assertTrue(any("processes under spillway" in line for line in lines))

    def test_stop_and_go_on(self):
        self.open(100, 20, self.pids[0])
        self.wait_for_keys()
        self.send("C-z")
        self.wait_for(lambda lines: not any(KEYS in line for line in lines))
        self.send("fg", "Enter")
        self.wait_for_keys()
        self.send("C-c")
        self.wait_for(lambda lines: not any(KEYS in line for line in lines))
        # What is typed before the prompt is there is echoed before it.
        self.send("echo code $?", "Enter")
        self.wait_for(lambda lines: "code 0" in lines or "$ code 0" in lines)

    def test_hang_up(self):
        """The command ends with its terminal."""
        self.open(100, 20, self.pids[0])
        self.wait_for_keys()
        shell = self.tmux("list-panes", "-t", "s", "-F", "#{pane_pid}").strip()
        command, = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        self.assertEqual(pathlib.Path(f"/proc/{command}/comm").read_text(), "spillway\n")
        self.tmux("kill-server")
        end = time.monotonic() + 30
        while os.path.exists(f"/proc/{command}"):
            self.assertLess(time.monotonic(), end, "it goes on")
            time.sleep(0.1)


if __name__ == "__main__":
    harness.main()
