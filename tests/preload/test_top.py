#!/usr/bin/env python3
"""spillway top shows a running program from outside."""
import datetime
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import harness
from harness import COMMAND, MIB, PROGRAMS

PROGRAM = PROGRAMS / "sites"


class Top(harness.Case):
    def start(self, *words, launcher=True, before=(), **variables):
        """The program, waiting, and its pid; that of the command `before` it, if there is one."""
        command = [*before, PROGRAM, *words, "wait"]
        if launcher:
            command = [COMMAND, "sim", "--memory", "1GiB", "--summary", "off", "--", *command]
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            env={**harness.environment(not launcher, not launcher, SUMMARY="off"), **variables})
        self.addCleanup(process.communicate)
        self.waiting(process)
        return process, self.child_of(process.pid) if launcher else process.pid

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
                self.assertRegex(text, r"(?m)^sites take \(pid \d+\), simulated GPU, mode auto$")
                self.assertRegex(text, r"(?m)^  host +0 B   peak +0 B   not used yet$")
                self.assertIs(shown["simulated"], True)
                self.assertRegex(text, r"(?m)^  live +8 MiB   peak +72 MiB$")
                self.assertRegex(text, r"(?m)^ +3 MiB  37.5 % +1 block   take_exported in sites$")

    def test_each_second(self):
        """On a terminal, until q, Ctrl-C, or the end of the program; the terminal is as before."""
        for ending in "q", "\x03", None:
            with self.subTest(ending=ending):
                process, pid = self.start("take")
                inner, outer = pty.openpty()
                environment = {**os.environ, "TERM": "xterm"}
                before = termios.tcgetattr(outer)
                top = subprocess.Popen([str(COMMAND), "top", str(pid)], stdin=outer, stdout=outer,
                                       stderr=outer, start_new_session=True, env=environment,
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

    def test_a_long_site_keeps_its_ends(self):
        """Rows that differ there do not look alike on a narrow terminal."""
        _, pid = self.start("take")
        inner, outer = pty.openpty()
        fcntl.ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 40, 0, 0))
        with subprocess.Popen([str(COMMAND), "top", str(pid)], stdin=outer, stdout=outer,
                              stderr=outer, start_new_session=True, preexec_fn=self.own_terminal,
                              env={**os.environ, "TERM": "xterm"}) as top:
            shown = self.read(inner, 1.5)
            os.write(inner, b"q")
            self.assertEqual(top.wait(timeout=10), 0)
        self.assertRegex(shown, r"37\.5 %  take_e\.\.\.n sites")
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

    def waiting(self, process):
        self.assertEqual(process.stdout.readline(), "waiting\n")

    @unittest.skipIf(harness.SANITIZED, "cat is not built with the sanitizer")
    def test_executed(self):
        """A process that executes another program is shown as that one."""
        for launcher in True, False:
            with self.subTest(launcher=launcher):
                words = "take", "wait", "exec", "peak", "take", "wait", "other"
                process, pid = self.start(*words, launcher=launcher)
                top = self.watch(pid, "--json")
                everything = self.watch("--json", "--sort", "pid")
                self.assertEqual(self.next(top)["process"], "sites take")
                process.stdin.write("\n")
                process.stdin.flush()
                self.waiting(process)
                shown = self.until(top, lambda frame: frame["process"] != "sites take")
                self.assertEqual(shown["process"], "sites peak")
                self.assertEqual(shown["devices"][0]["live_peak_bytes"], 64 * MIB)
                self.assertEqual(shown["devices"][0]["sites"][1]["label"],
                                 "take_exported in sites")
                self.until(everything, lambda frame: self.name_of(pid, frame) == "sites peak")
                process.stdin.write("\n")
                process.stdin.flush()
                self.assertEqual(top.wait(timeout=20), 1)
                self.assertEqual(top.stderr.read(),
                                 f"spillway: top: process {pid}: it runs another program now, "
                                 "which does not use CUDA yet\n")
                self.until(everything, lambda frame: self.name_of(pid, frame) is None)

    def watch(self, *arguments):
        """A command that goes on, each tenth of a second."""
        top = subprocess.Popen([str(COMMAND), "top", "--interval", "0.1", *map(str, arguments)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True,
                               env=harness.environment(False, False))
        self.addCleanup(top.communicate)
        self.addCleanup(top.terminate)
        return top

    @staticmethod
    def next(top):
        return json.loads(top.stdout.readline())

    def until(self, top, is_wanted):
        """The first frame that is wanted."""
        end = time.monotonic() + 30
        while not is_wanted(frame := self.next(top)):
            self.assertLess(time.monotonic(), end, frame)
        return frame

    @staticmethod
    def name_of(pid, shown):
        return next((process["process"] for process in shown["processes"]
                     if process["pid"] == pid), None)

    @unittest.skipIf(harness.SANITIZED, "unshare is not built with the sanitizer")
    def test_other_namespace(self):
        """A process in a container knows itself by another number than the command."""
        for options in ("--mount-proc",), ():
            apart = ["unshare", "--map-root-user", "--pid", "--fork", *options]
            probe = subprocess.run([*apart, "true"], text=True, capture_output=True)
            if probe.returncode != 0:
                self.skipTest("no namespace of processes can be made here: " + probe.stderr)
            for launcher in True, False:
                with self.subTest(options=options, launcher=launcher):
                    process, pid = self.start("take", launcher=launcher, before=apart)
                    pid = self.child_of(pid)
                    shown = json.loads(self.top(pid, "--once", "--json").stdout)
                    self.assertEqual((shown["pid"], shown["process"]), (pid, "sites take"))
                    self.assertEqual(shown["devices"][0]["live_bytes"], 8 * MIB)
                    self.assertEqual(len(shown["devices"][0]["sites"]), 2)
                    self.assertEqual([row[0] for row in self.listed([pid])], [str(pid)])
                    process.communicate("\n")

    @unittest.skipIf(harness.SANITIZED, "unshare is not built with the sanitizer")
    def test_left_running_in_another_namespace(self):
        """The launcher ends before such a process, and does not take it for one that died."""
        apart = ["unshare", "--map-root-user", "--pid", "--fork"]
        if subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
            self.skipTest("no namespace of processes can be made here")
        stats = self.folder / "stats.json"
        read, write = os.pipe()
        launcher = subprocess.Popen(
            [str(COMMAND), "sim", "--memory", "1GiB", "--summary", "off", "--stats", str(stats),
             "--", "sh", "-c", f'"$@" <&{read} & read line', "sh", *apart, str(PROGRAM), "take",
             "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, pass_fds=(read,), env=harness.environment(False, False))
        self.waiting(launcher)
        launcher.stdin.write("\n")
        launcher.stdin.flush()
        self.assertEqual(launcher.wait(), 0)
        self.assertFalse(stats.exists())
        os.write(write, b"\n")
        launcher.communicate()
        self.assertEqual(json.loads(stats.read_text())["devices"][0]["live_bytes"], 8 * MIB)
        os.close(read)
        os.close(write)

    @staticmethod
    def child_of(pid):
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        names = {child: pathlib.Path(f"/proc/{child}/comm").read_text().strip()
                 for child in children}
        # A helper has the launcher's name first, then "exe", then its own.
        program, = (int(child) for child, name in names.items()
                    if name != "exe" and not name.startswith("spillway"))
        return program

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
        self.assertTrue(re.match("usage: spillway top ", self.top("--help").stdout))

    def test_usage(self):
        for arguments, said in ((("x",), "expected the number"),
                                (("--what",), "--what is not an option"),
                                (("1", "2"), "2: unexpected argument"),
                                (("--interval", "0"), "expected seconds, from 0.1 to 86400"),
                                (("--interval", "nan"), "expected seconds"),
                                (("--interval", "1e99"), "expected seconds"),
                                (("--interval", "1s"), "--interval 1s: expected seconds"),
                                (("--sort", "size"), "expected live, host, rate, rank or pid"),
                                (("--prometheus", "x.txt"), "must end in .prom"),
                                (("--prometheus", "x.prom", "--json"), "exclude each other")):
            stderr = self.top(*arguments, status=2).stderr
            self.assertIn(said, stderr)
            self.assertEqual(stderr.count("\n"), 1, stderr)

    def start_ranks(self):
        """Two ranks of a job: the second one holds more."""
        return [self.start(*words, RANK=str(rank))[1]
                for rank, words in enumerate((("take",), ("take", "peak")))]

    def listed(self, pids, *arguments):
        """The rows of these processes in the list; other programs may run at the same time."""
        rows = [line.split() for line in self.top("--once", *arguments).stdout.splitlines()[2:]]
        return [row for row in rows if int(row[0]) in pids]

    def test_list(self):
        pids = self.start_ranks()
        lines = self.top().stdout.splitlines()
        self.assertRegex(lines[0], r"^\d+ processes under spillway, by live$")
        self.assertEqual(lines[1].split(), ["PID", "RANK", "MODE", "GPU", "LIVE", "PEAK", "FULL",
                                            "HOST", "ALLOC/S", "MOVED/S", "PROCESS"])
        rows = self.listed(pids)
        self.assertEqual([row[:8] for row in sorted(rows, key=lambda row: row[1])],
                         [[str(pids[0]), "0", "auto", "0", "8", "MiB", "8", "MiB"],
                          [str(pids[1]), "1", "auto", "0", "8", "MiB", "72", "MiB"]])
        self.assertEqual({" ".join(row[-2:]) for row in rows}, {"sites take"})
        for sort, order in (("rank", pids), ("pid", sorted(pids))):
            self.assertEqual([int(row[0]) for row in self.listed(pids, "--sort", sort)], order)

    def test_list_as_json(self):
        """Frames come at the interval, and say when."""
        pids = self.start_ranks()
        top = subprocess.Popen([str(COMMAND), "top", "--json", "--interval", "0.5"], text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               env=harness.environment(False, False))
        frames = [json.loads(top.stdout.readline()) for _ in range(4)]
        top.send_signal(signal.SIGTERM)
        self.assertEqual(top.communicate(timeout=10)[0], "")
        self.assertEqual(top.returncode, 0)
        times = [datetime.datetime.fromisoformat(frame["time"].replace("Z", "+00:00")).timestamp()
                 for frame in frames]
        self.assertLess(abs(times[-1] - time.time()), 10)
        for first, second in zip(times, times[1:]):
            self.assertTrue(0.4 < second - first < 3, times)
        for frame in frames:
            mine = {row["pid"]: row for row in frame["processes"] if row["pid"] in pids}
            self.assertEqual([mine[pid]["rank"] for pid in pids], [0, 1])
            self.assertEqual(mine[pids[1]]["devices"][0]["live_peak_bytes"], 72 * MIB)
            self.assertGreater(mine[pids[1]]["seconds"], 0.4)

    def test_rank_of_one(self):
        for variables, rank in ({"RANK": "7"}, 7), ({}, None), ({"RANK": "x"}, None):
            path = self.folder / f"{rank}-{len(variables)}.json"
            process, pid = self.start("take", SPILLWAY_STATS=str(path), **variables)
            shown = json.loads(self.top(pid, "--once", "--json").stdout)
            self.assertEqual(shown["rank"], rank)
            self.assertEqual(", rank" in self.top(pid).stdout, rank is not None)
            process.communicate("\n")
            self.assertEqual(json.loads(path.read_text()).get("rank"), rank)

    METRIC = re.compile(r'([a-z_:]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')

    def metrics(self, path):
        """(values by name and pid, types) of a file in Prometheus' text format: each metric has
        one HELP and TYPE, before its values, which stand together."""
        values, types, seen, text = {}, {}, set(), path.read_text()
        self.assertTrue(text.endswith("\n"))
        current = None
        for line in text.splitlines():
            if line.startswith("# "):
                _, kind, name, rest = line.split(" ", 3)
                if kind == "TYPE":
                    self.assertEqual(current, name)
                    self.assertNotIn(name, types)
                    types[name] = rest
                current = name
                continue
            name, labels, value = self.METRIC.fullmatch(line).groups()
            self.assertEqual(name, current)
            labels = dict(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', labels or ""))
            place = name, labels.get("pid"), labels.get("device")
            self.assertNotIn(place, seen)  # of other programs, too, which may have more devices
            seen.add(place)
            values[name, labels.get("pid")] = float(value), labels
        return values, types

    def test_prometheus(self):
        pids = self.start_ranks()
        path = self.folder / "spillway.prom"
        self.assertEqual(self.top("--once", "--prometheus", path).stdout, "")
        values, types = self.metrics(path)
        self.assertEqual(os.listdir(self.folder), ["spillway.prom"])
        self.assertGreaterEqual(values["spillway_processes", None][0], 2)
        value, labels = values["spillway_live_peak_bytes", str(pids[1])]
        self.assertEqual(value, 72 * MIB)
        self.assertEqual(labels, {"device": "0", "pid": str(pids[1]), "rank": "1", "mode": "auto",
                                  "simulated": "true", "process": "sites take"})
        self.assertEqual(values["spillway_allocs_total", str(pids[0])][0], 2)
        self.assertEqual((types["spillway_live_bytes"], types["spillway_allocs_total"],
                          types["spillway_stall_seconds_total"]), ("gauge", "counter", "counter"))
        self.assertIn("stall_seconds_total seconds for which the program waited", path.read_text())
        self.assertEqual(path.stat().st_mode & 0o777, 0o666 & ~self.umask())

    @staticmethod
    def umask():
        mask = os.umask(0)
        os.umask(mask)
        return mask

    def test_prometheus_again_and_again(self):
        """The file is always whole, also for a reader at the moment of a change; it is of one
        process where one is named."""
        _, pid = self.start("take")
        path = self.folder / "one.prom"
        top = subprocess.Popen([str(COMMAND), "top", str(pid), "--interval", "0.1", "--prometheus",
                                str(path)], env=harness.environment(False, False),
                               stdin=subprocess.DEVNULL)
        inodes, end = set(), time.monotonic() + 60
        while len(inodes) < 4 and time.monotonic() < end:
            if path.exists():
                values, _ = self.metrics(path)
                self.assertEqual(values["spillway_processes", None][0], 1)
                self.assertIn(("spillway_moves_total", str(pid)), values)
                inodes.add(path.stat().st_ino)
        top.send_signal(signal.SIGTERM)
        self.assertEqual(top.wait(timeout=10), 0)
        self.assertGreaterEqual(len(inodes), 2)
        self.assertEqual(os.listdir(self.folder), ["one.prom"])
        (self.folder / "file").write_text("")
        result = self.top(pid, "--once", "--prometheus", self.folder / "file/x.prom", status=1)
        self.assertRegex(result.stderr, r"^spillway: top: .*/file/x.prom: Not a directory\n$")


if __name__ == "__main__":
    harness.main()
