#!/usr/bin/env python3
"""Runs the rows, each in a process of its own, and writes what they found as they end.

    check.py ROOT [--output DIR] [--call N] [--only ROW]... [--at-once N] [--list]

ROOT is build or dist/spillway. DIR gets page.md, rows.json and evidence.tar.gz. Ends with 0 if no
row is bad, 1 if one is, 2 for bad usage."""
import argparse
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
import machine
import page
import processes
from archive import Archive
from rows import CALLS, TABLE
from setting import Setting

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 570            # of one call
LEAST_SECONDS = 5        # a row is not begun with less
ALIVE_SECONDS = 40
KILL_SECONDS = 8
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

    def __init__(self, setting, output, seconds, bound):
        self.setting = setting
        self.output = output
        self.bound = bound   # of every row, where it is less than the row's own
        self.end = time.monotonic() + seconds
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="spillway-gpu-check-"))
        self.setting.save(self.work / "setting.json")
        self.archive = Archive(output / "evidence.tar.gz")
        self.facts, self.rows = page.read(output)
        self.sick = ""       # the row since which the device does not answer

    def left(self):
        return self.end - time.monotonic()

    def begin(self, row):
        """The entry of a row that begins: what stays if nothing follows."""
        entry = {"name": row.name, "what": row.what, "result": "began", "seconds": 0.0,
                 "reason": "no end is recorded", "findings": [], "notes": []}
        self.rows = [other for other in self.rows if other["name"] != row.name] + [entry]
        self.write()
        return entry

    def write(self):
        try:
            page.write(self.output, self.facts, self.rows)
        except OSError as error:
            print(f"cannot write to {self.output}: {error}", file=sys.stderr)

    def start(self, row, name, seconds, more):
        """Runs a row's process in a new folder. (ending, folder)"""
        folder = self.work / name
        folder.mkdir()
        ending = bounded.run(
            [sys.executable, "-B", "-X", "faulthandler", HERE / "row.py", row.name,
             self.work / "setting.json", f"{seconds:.1f}"],
            folder, seconds, env=self.setting.environment() | fault() | more, new_session=True,
            evidence=min(bounded.EVIDENCE_SECONDS, self.left() - seconds - KILL_SECONDS),
            floor=machine.memory_floor())
        return ending, folder

    def run(self, row):
        """Runs a row and notes what came of it."""
        entry = self.begin(row)
        if self.left() < LEAST_SECONDS:
            entry |= {"result": "not run", "reason": f"no time left; --only {row.name}"}
        elif self.sick and not self.alive():
            entry |= {"result": "not run",
                      "reason": f"the device does not answer since row {self.sick}"}
        else:
            self.run_row(row, entry)
        self.write()
        self.print(entry)

    def print(self, entry):
        print(f"| {entry['name']} | {entry['result']} | {entry['seconds']:.1f} | "
              f"{page.cell(page.headline(entry))} |", flush=True)

    def run_row(self, row, entry):
        kernel_log = machine.kernel_log()
        seconds = min(row.seconds, self.bound, self.left())
        ending, folder = self.start(row, row.name, seconds, {})
        found, unreadable = findings.read(folder / "findings.jsonl")
        result, reason = findings.judge(ending, found, unreadable)
        if result == "TIME OUT" and seconds < min(row.seconds, self.bound):
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
                self.left() > 3 * ending.seconds + ALIVE_SECONDS:
            more, second = self.start(row, f"{row.name}-again", 3 * ending.seconds + 5, CORE_DUMPS)
            outcome = findings.judge(more, *findings.read(second / "findings.jsonl"))
            entry["notes"].append("again: " + " ".join(filter(None, outcome)))
            self.archive.add_folder(f"{row.name}-again", second, True)
            shutil.rmtree(second, ignore_errors=True)
        if not self.setting.simulated:
            machine.save_state(folder)
            if not self.alive():
                self.sick = row.name
                entry["notes"].append("the device does not answer afterwards")

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
        shutil.rmtree(self.work, ignore_errors=True)


def fault():
    """The rehearsal's variable, which the environment of rows does not keep otherwise."""
    return {faults.VARIABLE: os.environ[faults.VARIABLE]} if faults.VARIABLE in os.environ else {}


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/gpu-check")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, help="folder for page, rows and archive")
    parser.add_argument("--call", type=int, choices=sorted(CALLS), help="the rows of one call")
    parser.add_argument("--only", action="append", metavar="ROW", help="these rows alone")
    parser.add_argument("--at-once", type=int, default=1, metavar="N",
                        help="run up to N rows that say nothing of times at the same time")
    parser.add_argument("--list", action="store_true", help="print the rows, and run none")
    parser.add_argument("--join", nargs="+", type=pathlib.Path, metavar="DIR",
                        help="write one page from these output folders to --output")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for everything together")
    parser.add_argument("--row-seconds", type=float, default=1e9, help="for each row at most")
    parser.add_argument("--simulated", metavar="SIZE", help="rehearse on a simulated GPU of SIZE")
    parser.add_argument("--tiny", action="store_true", help="as little work as shows a row runs")
    args = parser.parse_args()
    unknown = [name for name in args.only or () if name not in TABLE]
    if unknown:
        parser.error(f"no row {unknown[0]}; --list prints all")
    if args.at_once < 1:
        parser.error(f"--at-once {args.at_once}: at least 1 is expected")
    if not args.output:
        args.output = pathlib.Path(f"gpu-check-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    return args


def chosen(args):
    if args.only:
        return [row for row in TABLE.values() if row.name in args.only]
    return [row for row in TABLE.values() if args.call in (None, row.call)]


def run_beside(check, args, rows):
    """Runs those of the rows that may run at the same time, and returns the others."""
    arguments = [args.root, "--row-seconds", str(args.row_seconds)]
    arguments += ["--simulated", args.simulated] if args.simulated else []
    arguments += ["--tiny"] if args.tiny else []
    folders = beside.run([row for row in rows if row.beside], args.at_once, check.output, arguments,
                         check.left())
    found = beside.gather(folders, check.archive)
    names = {entry["name"] for entry in found}
    check.rows = [entry for entry in check.rows if entry["name"] not in names] + found
    check.write()
    for entry in found:
        check.print(entry)
    return [row for row in rows if not row.beside]


def print_list():
    for row in TABLE.values():
        print(f"{row.call}  {row.seconds:4.0f} s  {row.name:24} {row.what}")


def finish(rows):
    bad = [row["name"] for row in rows if page.is_bad(row)]
    print(f"\n{len(rows)} rows: {page.counts(rows)}" + (f"; bad: {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


def main():
    args = arguments()
    if args.list:
        print_list()
        return 0
    args.output.mkdir(parents=True, exist_ok=True)
    if args.join:
        facts, rows = page.join(args.join)
        page.write(args.output, facts, rows)
        return finish(rows)
    processes.adopt_orphans()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    setting = Setting(str(args.root.resolve()), args.simulated is not None,
                      args.simulated or "", args.tiny)
    check = Check(setting, args.output.resolve(), args.seconds, args.row_seconds)
    ran = [row.name for row in chosen(args)]
    print("| row | result | seconds | findings |\n|---|---|---|---|", flush=True)
    try:
        check.facts = machine.facts(setting) | {"date": datetime.date.today().isoformat()}
        check.archive.add_text("machine.txt", machine.full(setting))
        rest = chosen(args)
        if args.at_once > 1:
            rest = run_beside(check, args, rest)
        for row in rest:
            try:
                check.run(row)
            except OSError as error:
                check.rows[-1] |= {"result": "FAILED", "reason": f"the check itself: {error}"}
    except Stopped as reason:
        if check.rows and check.rows[-1]["result"] == "began":
            check.rows[-1]["reason"] = f"the check was ended by {reason}"
        processes.kill(-1, os.getpid(), seconds=3)
    finally:
        check.write()
        check.close()
    return finish([row for row in check.rows if row["name"] in ran])


if __name__ == "__main__":
    sys.exit(main())
