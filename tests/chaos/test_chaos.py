#!/usr/bin/env python3
"""Random programs (chaos.c) under random adversities (plans.py). Every run must end with success or
clean errors, with right content, and leave no file behind.

    test_chaos.py                          the first 20 seeds
    test_chaos.py --first N --count N      others; --jobs N at the same time
    test_chaos.py --seed N                 one run, with all that it printed
    test_chaos.py --seed N --without PART  the same without a part of its plan, which is printed
    test_chaos.py --seed N --shrink        leaves out as many parts as it can while the run fails
    --bare                                 without spillway: the program itself is right

A seed stands for the program, its options and all that it has to bear. Threads make a run differ a
little from the last one with the same seed: --times N repeats it.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../preload"))
import harness
import plans

CHAOS = harness.ROOT / "tests/chaos/chaos"
SANITIZER = os.environ.get("BUILD_SANITIZED", "none")
TIMEOUT = 300 if harness.SANITIZED else float(os.environ.get("CHAOS_TIMEOUT", 90))
FINDINGS, USAGE = 3, 2
# What a program says on stderr that must not be.
BAD = re.compile(r"invariant|is broken|Sanitizer|runtime error|corrupt|smashing|not an option|"
                 r"double free|SPILLWAY_\w+=.*expected|policy.*expected")
# The driver refuses for good to map memory again, or to grant access to it. Nothing can bring it
# back: the program is told, and what uses the memory ends with one of two errors.
LOST = "the driver does not give back access"
ERRORS_OF_LOST = re.compile(r"FINDING .*: CUDA_ERROR_(INVALID_VALUE|ILLEGAL_ADDRESS)")
# A complete file has such a name for a moment: until it gets its own, or the process ends.
LEFT_WHILE_NAMED = re.compile(r"stats\.\d+\.[0-9a-f]+\.tmp")
# The launcher refuses to start without it; a build of single targets may not have it.
RUNTIME = harness.SIM / "libcudart.so.13"
# Each sanitizer needs address space and /proc, and is not made for these denials.
UNSANITIZED = {"resources", "denied", "folders"}

HIDE_PROC = "mount -t tmpfs none /proc"
FOLDERS = {
    "full": 'mount -t tmpfs -o size={disk}k none "$OUT"',
    "read-only": 'mount --bind "$OUT" "$OUT" && mount -o remount,bind,ro "$OUT"',
    "no /proc": HIDE_PROC,
    "missing": 'rmdir "$OUT"',
}


class Run:
    """One run of a plan, in a folder of its own."""

    def __init__(self, seed, parts, folder, bare=False):
        self.seed, self.parts, self.bare = seed, parts, bare
        self.folder, self.out = folder, folder / "out"
        self.facts, self.options, self.arguments = {}, {}, []
        for part in parts:
            self.facts |= part.facts
            self.options |= part.options
            self.arguments += part.arguments
        if bare:
            self.facts.pop("launcher", None)
        self.problems = []
        self.words = self.stdout = self.stderr = ""
        self.status = None

    def written(self, kind):
        return kind in self.facts.get("writes", ())

    def environment(self):
        # Beyond this the simulator stops copying, and contents would be wrong.
        options = {"SIM_PAYLOAD": "2GiB"} | self.options
        if "policy" in self.facts:
            path = self.folder / "policy.json"
            path.write_text(self.facts["policy"])
            options["POLICY"] = path
        for kind, name in (("stats", "STATS"), ("record", "RECORD"), ("sim-log", "SIM_LOG")):
            if self.written(kind):
                options[name] = self.out / kind
        if self.written("log"):
            options["LOG"] = f"debug:{self.out / 'log'}"
        if self.written("summary"):
            options["SUMMARY"] = "on"
        env = harness.environment(preload=False, sim="launcher" not in self.facts or
                                  self.facts["launcher"] == "run", **options)
        env |= {"HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp"),
                "OUT": str(self.out)}
        env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=1"
        env["UBSAN_OPTIONS"] = "abort_on_error=1:print_stacktrace=1"
        # A child that forks from a program with threads goes on, and a program that leaves at once
        # joins no thread.
        env["TSAN_OPTIONS"] = "halt_on_error=0:die_after_fork=0:report_thread_leaks=0"
        return env

    def command(self):
        words = [str(CHAOS), str(self.seed), *self.arguments]
        if self.bare:
            pass
        elif "launcher" in self.facts:
            words = [str(harness.COMMAND), self.facts["launcher"], "--", *words]
        else:
            words = ["env", f"LD_PRELOAD={harness.OBJECT}", *words]
        way = self.facts.get("folders")
        if way:
            # The program's files are counted where it sees them.
            prepare = FOLDERS[way].format(disk=self.facts["disk"])
            script = (f'{prepare} || exit 77; "$@"; status=$?; '
                      f'[ ! -d "$OUT" ] || ls -A "$OUT" >"$OUT/../left"; exit $status')
            words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh",
                     *words]
        return words

    def execute(self):
        for name in ("out", "home", "tmp"):
            (self.folder / name).mkdir()
        self.words = self.command()
        process = subprocess.Popen(self.words, env=self.environment(), cwd=self.folder, text=True,
                                   errors="replace", stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        try:
            self.stdout, self.stderr = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.problems.append(f"hangs\n{stacks(process.pid)}")
            os.killpg(process.pid, 9)
            self.stdout, self.stderr = process.communicate()
        self.status = process.returncode
        if not self.problems:
            self.judge()
        return self

    # ---- what must hold ----

    def judge(self):
        ends = {"kill": (0, -9, 137), "term": (0, -15, 143)}
        lost = self.has_lost_memory()
        if self.status not in ends.get(self.facts.get("leave"), (0,)) and not (
                lost and self.status == FINDINGS):
            self.problems.append(f"status {self.status}")
        for line in self.stdout.splitlines():
            if line.startswith("FINDING") and not (lost and ERRORS_OF_LOST.fullmatch(line)) or \
                    "spillway" in line:
                self.problems.append(line)
        for line in self.stderr.splitlines():
            if BAD.search(line):
                self.problems.append(line)
        self.judge_files()
        if self.status == 0 and "leave" not in self.facts:
            self.judge_books()

    def has_lost_memory(self):
        """The injected fault lasts, and spillway has said that it lost memory by it."""
        lasting = re.search(r"cuMem(Map|SetAccess):\d+\+", self.options.get("SIM_FAIL", ""))
        log = self.out / "log"
        return lasting is not None and LOST in self.stderr + (
            log.read_text() if log.exists() else "")

    def judge_files(self):
        """Only the files that were asked for, by their names. A fork writes none."""
        left = self.folder / "left"
        names = left.read_text().split() if left.exists() else \
            [path.name for path in self.out.iterdir()] if self.out.exists() else []
        for name in names:
            if "leave" in self.facts and LEFT_WHILE_NAMED.fullmatch(name):
                continue
            if name not in ("stats", "record", "log", "sim-log") or not self.written(name):
                self.problems.append(f"left behind: out/{name}")
        for path in (self.folder / "tmp").iterdir():
            self.problems.append(f"left behind: tmp/{path.name}")

    def judge_books(self):
        """The figures of a run that freed all it had."""
        path = self.out / "stats"
        if "folders" in self.facts or not self.written("stats") or self.bare:
            return
        if not path.exists():
            if "resources" not in self.facts and "faults" not in self.facts:
                self.problems.append("no statistics")
            return
        stats = json.loads(path.read_text())
        if "faults" in self.facts or " 0 lost blocks" not in self.stdout:
            return
        if "fsize" in self.facts.get("resources", ""):
            return  # the last file may have been too large: these are earlier figures
        for device in stats["devices"]:
            if device["live_bytes"] or device["host_bytes"] or device["allocs"] != device["frees"]:
                self.problems.append(f"the books: {device}")

    def told(self):
        """A report of the run."""
        lines = [f"seed {self.seed}: " + ", ".join(part.name for part in self.parts)]
        lines += [f"  {part.name}: {' '.join(part.arguments)} {part.options} {part.facts}"
                  for part in self.parts]
        lines += [f"  PROBLEM: {problem}" for problem in self.problems]
        lines += [f"  | {line}" for line in (self.stdout + self.stderr).splitlines()[-60:]]
        return "\n".join(lines)


def stacks(group):
    """The stacks of all threads of the programs that hang, if there is a debugger."""
    if not shutil.which("gdb"):
        return ""
    listed = subprocess.run(["pgrep", "-s", str(group), "-x", CHAOS.name], text=True,
                            capture_output=True).stdout.split()
    return "\n".join(subprocess.run(["gdb", "-p", pid, "-batch", "-ex", "thread apply all bt"],
                                    text=True, capture_output=True, timeout=60).stdout[-20000:]
                     for pid in listed)


def can_mount():
    return subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                           HIDE_PROC], capture_output=True).returncode == 0


def parts_of(seed, without):
    return [part for part in plans.plan(seed) if part.name == "program" or part.name not in without]


def run(seed, without=(), bare=False):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        return Run(seed, parts_of(seed, without), folder, bare).execute()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fails(seed, without, options):
    """The first of several runs that fails, or None."""
    for _ in range(options.times):
        done = run(seed, without, options.bare)
        if done.problems:
            return done
    return None


def shrink(seed, options):
    """Leaves out parts while the run fails; returns the smallest run that did."""
    failing = fails(seed, options.without, options)
    for part in plans.plan(seed)[1:]:
        if failing and part.name not in options.without:
            smaller = fails(seed, [*options.without, part.name], options)
            if smaller:
                failing = smaller
                options.without.append(part.name)
    return failing


def run_many(options):
    begun, failed = time.monotonic(), []
    seeds = range(options.first, options.first + options.count)
    print(f"seeds {seeds[0]} to {seeds[-1]}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in pool.map(lambda seed: run(seed, options.without, options.bare), seeds):
            if done.problems:
                failed.append(done.seed)
                print(done.told(), flush=True)
    print(f"{options.count} runs, {len(failed)} failed: {failed}; "
          f"{time.monotonic() - begun:.0f} s")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--bare", action="store_true")
    options = parser.parse_args()
    options.without += UNSANITIZED if harness.SANITIZED else [] if can_mount() else ["folders"]
    if not RUNTIME.exists():
        print(f"without the launcher, which needs {RUNTIME.relative_to(harness.ROOT)}")
        options.without.append("launcher")
    if options.seed is None:
        return run_many(options)
    if options.shrink:
        done = shrink(options.seed, options)
    else:
        done = fails(options.seed, options.without, options) or run(options.seed, options.without,
                                                                    options.bare)
    print(done.told() if done else "it did not fail")
    return 1 if done and done.problems else 0


if __name__ == "__main__":
    sys.exit(main())
