#!/usr/bin/env python3
"""Runs the rows, each in a process of its own, and writes what they found as they end.

    check.py ROOT [--plan] [--call N] [--after PAGE...] [--only ROW]... [--at-once N] [--output DIR]

ROOT is build or dist/spillway. DIR gets page.md, rows.json and evidence.tar.gz. Ends with 0 if no
row is bad, 1 if one is, 2 for bad usage."""
import argparse
import dataclasses
import datetime
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import beside
import bounded
import faults
import findings
import fingerprint
import forks
import machine
import page
import plan
import processes
from archive import Archive
from rows import TABLE
from setting import Setting

HERE = pathlib.Path(__file__).resolve().parent
BEGIN = time.monotonic()
RESULTS = HERE / "results"
LEAST_SECONDS = 5        # a row is not begun with less
ALIVE_SECONDS = 40
KILL_SECONDS = 8
SICK = "the device does not answer afterwards"
# For a second run of a row that went wrong by itself; they slow a kernel down.
CORE_DUMPS = {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP": "1",
              "CUDA_COREDUMP_FILE": "core-cuda-%p"}


class Stopped(Exception):
    """Somebody told the whole check to end."""


def stop(number, frame):
    signal.signal(number, signal.SIG_IGN)
    raise Stopped(findings.signal_name(number))


class Check:
    """One call: its rows, and where they go."""

    def __init__(self, args):
        self.args = args
        self.output = args.output.resolve()
        self.end = BEGIN + args.seconds
        self.costs = {}      # seconds that rows are expected to take
        self.planned = []    # the rows of this call, without those for which time may be left
        self.code = {} if args.part else fingerprint.of_root(args.root)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="spillway-gpu-check-"))
        self.setting = Setting(str(args.root.resolve()), args.simulated is not None,
                               args.simulated or "", args.tiny)
        self.keeper = None if args.part else forks.Keeper(self.work / "forks",
                                                          self.setting.python())
        self.setting = dataclasses.replace(
            self.setting, forks=args.forks or str(self.keeper.python))
        self.setting.save(self.work / "setting.json")
        self.archive = Archive(self.output / "evidence.tar.gz")
        self.facts, self.rows = page.read(self.output)
        self.sick = ""       # the row since which the device does not answer

    def left(self):
        return self.end - time.monotonic()

    def later(self):
        """The seconds that the call's other rows still need."""
        begun = {entry["name"] for entry in self.rows}
        return self.args.later + sum(
            self.costs[row.name] / (self.args.at_once if row.beside else 1)
            for row in self.planned if row.name not in begun)

    def find_facts(self):
        """A part of another check leaves them to that one."""
        if not self.args.part:
            self.facts = machine.facts(self.setting) | {"date": datetime.date.today().isoformat()}
            self.archive.add_text("machine.txt", machine.full(self.setting))

    def enter(self, row, result="began", reason="no end is recorded"):
        """The entry of a row that begins: what stays if nothing follows."""
        entry = {"name": row.name, "what": row.what, "result": result, "seconds": 0.0,
                 "reason": reason, "findings": [], "notes": [],
                 "code": self.code.get(row.name, "unknown"), "card": self.facts.get("gpu", ""),
                 "when": datetime.datetime.now().isoformat(timespec="seconds")}
        self.keep(row.name, entry)
        return entry

    def keep(self, name, entry):
        self.rows = [other for other in self.rows if other["name"] != name] + [entry]
        self.write()

    def write(self):
        try:
            page.write(self.output, self.facts, self.rows)
        except OSError as error:
            print(f"cannot write to {self.output}: {error}", file=sys.stderr)

    def start(self, row, name, seconds, more, *flags):
        """Runs a row's process in a new folder. (ending, folder)"""
        folder = self.work / name
        folder.mkdir()
        ending = bounded.run(
            [sys.executable, "-B", "-X", "faulthandler", HERE / "row.py", row.name,
             self.work / "setting.json", f"{seconds:.1f}", *flags],
            folder, seconds, env=self.setting.environment() | fault() | more, new_session=True,
            evidence=min(bounded.EVIDENCE_SECONDS, self.left() - seconds - KILL_SECONDS),
            floor=machine.memory_floor())
        return ending, folder

    def why_not(self, row):
        """Why a row does not begin now, or ""."""
        cost = self.costs.get(row.name, 0)
        if self.left() < max(LEAST_SECONDS, cost):
            return f"about {cost:.0f} s are needed, {max(0, self.left()):.0f} s were left; " \
                   f"--only {row.name}" if cost else f"no time left; --only {row.name}"
        if self.sick and not self.alive():
            return f"the device does not answer since row {self.sick}"
        return ""

    def run(self, row):
        """Runs a row and notes what came of it."""
        why_not = self.why_not(row)
        entry = self.enter(row, "not run" if why_not else "began",
                           why_not or "no end is recorded")
        if not why_not:
            self.run_row(row, entry)
            self.write()
        self.print(entry)

    def run_beside(self, rows, at_once):
        """Runs rows at the same time, each in a check of its own."""
        arguments = [self.args.root, "--row-seconds", str(self.args.row_seconds),
                     "--forks", self.setting.forks, "--later", str(self.later())]
        arguments += ["--simulated", self.args.simulated] if self.args.simulated else []
        arguments += ["--tiny"] if self.args.tiny else []
        beside.Lanes(arguments, self.output, self.begin_beside, self.end_beside).run(rows, at_once)

    def begin_beside(self, row):
        why_not = self.why_not(row)
        entry = self.enter(row, "not run" if why_not else "began",
                           why_not or "no end is recorded")
        if why_not:
            self.print(entry)
        return 0 if why_not else self.left() - KILL_SECONDS / 2

    def end_beside(self, row, entry, folder):
        if entry is not None:
            begun = next(other for other in self.rows if other["name"] == row.name)
            entry |= {key: begun[key] for key in ("code", "card", "when")}
            self.keep(row.name, entry)
            self.print(entry)
            if SICK in entry["notes"]:
                self.sick = row.name
        self.archive.add_archive(folder / "evidence.tar.gz")

    def run_all(self, groups):
        """groups: lists of rows, and how many of each at a time."""
        for rows, at_once in groups:
            if at_once > 1:
                self.run_beside(rows, at_once)
                continue
            for row in rows:
                try:
                    self.run(row)
                except OSError as error:
                    self.rows[-1] |= {"result": "FAILED", "reason": f"the check itself: {error}"}

    def told_to_end(self, reason, rows):
        """What has not ended has not run."""
        names = {entry["name"] for entry in self.rows}
        for row in rows:
            if row.name not in names:
                self.enter(row)
        for entry in self.rows:
            if entry["result"] == "began" and entry["name"] in {row.name for row in rows}:
                entry |= {"result": "not run", "reason": f"the check was ended by {reason}"}

    def print(self, entry):
        print(f"| {entry['name']} | {entry['result']} | {entry['seconds']:.1f} | "
              f"{page.cell(page.headline(entry))} |", flush=True)

    def run_row(self, row, entry):
        kernel_log = machine.kernel_log()
        own = min(row.seconds, self.args.row_seconds)
        seconds = min(own, self.left())
        flags = ["--cut"] if seconds < own else []
        ending, folder = self.start(row, row.name, seconds, {}, *flags)
        found, unreadable = findings.read(folder / "findings.jsonl")
        result, reason = findings.judge(ending, found, unreadable)
        if result == "TIME OUT" and seconds < own:
            result = "not run"
            reason = f"cut short after {seconds:.0f} s, when the call's time was over; " \
                     f"--only {row.name}"
        entry |= {"result": result, "reason": reason, "seconds": ending.seconds,
                  "findings": [vars(finding) for finding in found]}
        data, broken = findings.data(folder / "data.json")
        if data is not None:
            entry["data"] = data
        entry["notes"] += [broken] if broken else []
        if unreadable and "cannot be read" not in reason:
            entry["notes"].append(f"{unreadable} lines of its findings cannot be read")
        if ending.behind:
            entry["notes"].append(f"left {ending.behind} processes behind")
        entry["notes"] += machine.new_xids(kernel_log, machine.kernel_log())
        if page.is_bad(entry):
            self.explain(row, entry, ending, folder)
        self.archive.add_folder(row.name, folder, page.is_bad(entry))
        shutil.rmtree(folder, ignore_errors=True)

    def explain(self, row, entry, ending, folder):
        """Collects what explains a bad row, and finds out whether the device still answers."""
        if entry["result"] in ("WRONG", "FAILED", "DIED") and row.again and \
                self.left() - self.later() > 3 * ending.seconds + ALIVE_SECONDS:
            more, second = self.start(row, f"{row.name}-again", 3 * ending.seconds + 5, CORE_DUMPS)
            outcome = findings.judge(more, *findings.read(second / "findings.jsonl"))
            entry["notes"].append("again: " + " ".join(filter(None, outcome)))
            self.archive.add_folder(f"{row.name}-again", second, True)
            shutil.rmtree(second, ignore_errors=True)
        if not self.setting.simulated:
            machine.save_state(folder)
            if not self.alive():
                self.sick = row.name
                entry["notes"].append(SICK)

    def alive(self):
        """True if a process of its own can use the device."""
        program = self.setting.program("probe")
        if program is None or self.left() < 1:
            return True
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        words, more = self.setting.command([program, "alive"], False)
        ending = bounded.run(words, folder, min(ALIVE_SECONDS, self.left()),
                             env=self.setting.environment() | more, new_session=True)
        if ending.status == 0:
            self.sick = ""
        return ending.status == 0

    def close(self):
        if self.keeper:
            self.keeper.close()
            self.archive.add_text("forks.txt", (self.work / "forks/log").read_text())
        shutil.rmtree(self.work, ignore_errors=True)


def fault():
    """The rehearsal's variable, which the environment of rows does not keep otherwise."""
    return {faults.VARIABLE: os.environ[faults.VARIABLE]} if faults.VARIABLE in os.environ else {}


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/gpu-check")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, help="folder for page, rows and archive")
    parser.add_argument("--plan", action="store_true", help="print what runs in which call")
    parser.add_argument("--call", type=int, choices=range(1, plan.CALLS + 1),
                        help="run this call of the plan")
    parser.add_argument("--after", nargs="+", default=[], metavar="PAGE",
                        help="leave out what these pages (page.md, rows.json, folders) settle")
    parser.add_argument("--only", action="append", metavar="ROW", help="these rows alone")
    parser.add_argument("--at-once", type=int, metavar="N",
                        help="run up to N rows that say nothing of times at the same time")
    parser.add_argument("--list", action="store_true", help="print the rows, and run none")
    parser.add_argument("--join", nargs="+", metavar="PAGE",
                        help="write one page from these to --output")
    parser.add_argument("--seconds", type=float, help="for everything together")
    parser.add_argument("--row-seconds", type=float, default=1e9, help="for each row at most")
    parser.add_argument("--simulated", metavar="SIZE", help="rehearse on a simulated GPU of SIZE")
    parser.add_argument("--tiny", action="store_true", help="as little work as shows a row runs")
    # For the checks of rows that run beside others.
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--forks", help=argparse.SUPPRESS)
    parser.add_argument("--later", type=float, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    unknown = [name for name in args.only or () if name not in TABLE]
    if unknown:
        parser.error(f"no row {unknown[0]}; --list prints all")
    if args.only and (args.plan or args.call):
        parser.error("--only names the rows, as --plan and --call do: one of them is expected")
    if args.at_once is None:
        args.at_once = plan.AT_ONCE if args.call else 1
    if args.at_once < 1:
        parser.error(f"--at-once {args.at_once}: at least 1 is expected")
    if args.seconds is None:
        args.seconds = plan.CALL_SECONDS - plan.END_SECONDS if args.call else 1e6
    if not args.output:
        args.output = pathlib.Path(f"gpu-check-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    return args


def entries(paths, rehearsal):
    """The rows of these pages."""
    found = []
    for path in paths:
        facts, rows = page.load(path)
        if facts.get("simulated") and not rehearsal:
            raise page.Unreadable(f"{path}: a page of a real GPU is expected, this is a rehearsal")
        found += rows
    return found


def make_plan(args):
    """The plan; with --after and a call, of what is left for that call and those after it."""
    first = args.call if args.call and args.after else 1
    code, tree = fingerprint.of_root(args.root), fingerprint.of_tree()
    stale = [name for name in tree if code.get(name) != tree[name]]
    if stale:
        print(f"scripts/gpu-check: {args.root} is not of this tree, for {len(stale)} rows "
              f"({stale[0]} ...): scripts/bundle makes a new one", file=sys.stderr)
    rehearsal = args.simulated is not None
    return plan.make(entries(sorted(RESULTS.glob("*gb.md")), rehearsal),
                     entries(args.after, rehearsal), code, range(first, plan.CALLS + 1))


def chosen(args, planned):
    """The Items of the rows to run, then of those that run if time is left."""
    if planned is not None:
        return planned.items_from(args.call)
    return [plan.Item(row.name, 0, row.beside) for row in TABLE.values()
            if not args.only or row.name in args.only], []


def print_list():
    for row in TABLE.values():
        print(f"{row.cost:4.0f} s, at most {row.seconds:4.0f} s  {row.name:18} {row.what}")


def finish(rows):
    bad = [row["name"] for row in rows if page.is_bad(row)]
    print(f"\n{len(rows)} rows: {page.counts(rows)}" + (f"; bad: {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


def join(args):
    facts, rows = page.join([page.load(path) for path in args.join])
    args.output.mkdir(parents=True, exist_ok=True)
    page.write(args.output, facts, rows)
    return finish(rows)


def run(args, planned):
    """Runs the rows that were chosen."""
    first, more = chosen(args, planned)
    groups = [([TABLE[item.name] for item in items], args.at_once if side else 1)
              for items, side in [*plan.groups(first), *plan.groups(more)]]
    rows = [row for some, _ in groups for row in some]
    args.output.mkdir(parents=True, exist_ok=True)
    processes.adopt_orphans()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    check = Check(args)
    check.costs = {item.name: item.seconds for item in (*first, *more)}
    check.planned = [TABLE[item.name] for item in first]
    print("| row | result | seconds | findings |\n|---|---|---|---|", flush=True)
    try:
        check.find_facts()
        check.run_all(groups)
    except Stopped as reason:
        check.told_to_end(reason, rows)
        processes.kill(-1, os.getpid(), seconds=3)
    finally:
        check.write()
        check.close()
    return finish([row for row in check.rows if row["name"] in TABLE and
                   TABLE[row["name"]] in rows])


def main():
    args = arguments()
    if args.list:
        print_list()
        return 0
    try:
        if args.join:
            return join(args)
        planned = make_plan(args) if args.plan or args.call else None
    except page.Unreadable as reason:
        print(f"scripts/gpu-check: {reason}", file=sys.stderr)
        return 2
    if args.plan:
        print(plan.text(planned) + "\n", flush=True)
    return 0 if args.plan and not args.call else run(args, planned)


if __name__ == "__main__":
    sys.exit(main())
