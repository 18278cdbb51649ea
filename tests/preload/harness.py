"""Runs the test programs on the simulated GPU, bare or under spillway, and reads what comes out.

The build folder is in the environment as BUILD_ROOT; set by meson.build. Whatever spillway writes
to stderr must be expected: a line that a test did not allow fails it.
"""
import dataclasses
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
OBJECT = ROOT / "libspillway.so"
COMMAND = ROOT / "spillway"
SIM = ROOT / "sim"
REPLAY = ROOT / "tests/tools/replay"
TRACES = SOURCE / "tests/traces"
PROGRAMS = ROOT / "tests/preload"
SANITIZED = os.environ.get("BUILD_SANITIZED", "none") != "none"

MIB = 1 << 20
GIB = 1 << 30


@dataclasses.dataclass
class Result:
    """The result of a program: its exit status, output and statistics."""
    status: int        # as subprocess has it: -n when it died of signal n
    stdout: str
    stderr: str
    stats: dict | None  # the statistics file; None when there is none

    def said(self):
        """The lines that spillway or the simulator wrote to stderr, without out-of-memory
        reports."""
        return said(self.stderr)[0]

    def reports(self):
        """The out-of-memory reports in full, each a list of lines."""
        return said(self.stderr)[1]

    def device(self, ordinal=0):
        return self.stats["devices"][ordinal]


def said(stderr):
    """The lines of spillway, and the reports that follow lines about out of memory."""
    lines, reports, open_report = [], [], False
    for line in stderr.splitlines():
        if not re.match(r"spillway\b", line):
            continue
        if open_report and line.startswith("spillway:   "):
            reports[-1].append(line.removeprefix("spillway:   "))
            continue
        open_report = line.startswith("spillway: out of memory on device ")
        if open_report:
            reports.append([])
        lines.append(line)
    return lines, [report for report in reports if report]


def environment(preload=True, sim=True, **options):
    """A clean environment; options are names of variables without the prefix SPILLWAY_, the empty
    name is SPILLWAY itself. Where documents leave open what a driver does, it does the worse: what
    spillway does must not depend on the better."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith("SPILLWAY") and key not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    if preload:
        env["LD_PRELOAD"] = str(OBJECT)
    if sim:
        env["LD_LIBRARY_PATH"] = str(SIM)
        env["SPILLWAY_SIM_CAPTURE_VMM"] = "unsafe"
        env["SPILLWAY_SIM_CROSSING"] = "refused"
        env["SPILLWAY_SIM_REACH"] = "granted"
        env["SPILLWAY_SIM_REGRANT"] = "unsafe"
        env["SPILLWAY_SIM_HANDLES"] = "unchecked"
    for name, value in options.items():
        env["SPILLWAY_" + name if name else "SPILLWAY"] = str(value)
    return env


def report(path, *arguments):
    """What `spillway report` makes of a recording: (exit code, stdout as bytes, stderr)."""
    done = subprocess.run([COMMAND, "report", path, *arguments], capture_output=True,
                          env=environment(False, False), timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


class Case(unittest.TestCase):
    """A test with a folder of its own for statistics files."""
    maxDiff = None
    numbers = itertools.count()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_command(self, command, env, timeout=300):
        """Runs a command line as it is; checks nothing."""
        done = subprocess.run([str(word) for word in command], env=env, capture_output=True,
                              text=True, errors="replace", timeout=timeout, cwd=self.folder)
        return Result(done.returncode, done.stdout, done.stderr, None)

    def run_program(self, *command, preload=True, sim=True, status=0, allow=(), timeout=300,
                    **options):
        """Runs a program on the simulated GPU. Each pattern of `allow` is a line that spillway may
        write; the summary is off unless it was asked for."""
        path = options.get("STATS", self.folder / f"stats-{next(self.numbers)}.json")
        if preload:
            options = {"SUMMARY": "off", "STATS": path, **options}
        result = self.run_command(command, environment(preload, sim, **options), timeout)
        if path != "" and os.path.exists(path):
            result.stats = json.loads(pathlib.Path(path).read_text())
        what = f"{command} {options}\n{result.stdout}{result.stderr}"
        if status is not None:
            self.assertEqual(result.status, status, what)
        for line in result.said():
            self.assertTrue(any(re.search(pattern, line) for pattern in allow),
                            f"unexpected: {line}\n{what}")
        return result

    def run_both(self, *command, status=0, allow=(), timeout=300, **options):
        """Runs a program bare and under spillway: its output must be the same. Returns the second
        result."""
        sim_options = {key: value for key, value in options.items() if key.startswith("SIM_")}
        bare = self.run_program(*command, preload=False, status=status, timeout=timeout,
                                **sim_options)
        pool = self.run_program(*command, status=status, allow=allow, timeout=timeout, **options)
        self.assertEqual(bare.stdout, pool.stdout)
        return pool


def main():
    """unittest's runner with Meson's exit codes: 77 when every test was skipped."""
    program = unittest.main(module="__main__", exit=False, argv=sys.argv[:1] + sys.argv[1:])
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.testsRun > 0 and len(result.skipped) == result.testsRun else 0)
