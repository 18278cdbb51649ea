#!/usr/bin/env python3
"""The rehearsal of gpu-check on the simulated GPU: rows that go wrong in every way end within their
bounds, with a page that says what happened, and the rows after them run.

    test_rehearsal.py [--long]     --long: every row as well
"""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import archive  # noqa: E402
import bounded  # noqa: E402
import findings  # noqa: E402
import fingerprint  # noqa: E402
import page  # noqa: E402
import processes  # noqa: E402
import session  # noqa: E402
from faults import FOREVER, KINDS, VARIABLE  # noqa: E402
from rows import TABLE, spilling  # noqa: E402
from sleepers import await_sleepers  # noqa: E402

ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
SANITIZED = os.environ.get("BUILD_SANITIZED", "none") != "none"
LONG = "--long" in sys.argv
ROW_SECONDS = 4
AT_ONCE = 4   # rehearsals, which mostly wait
# For looking at a row that hangs, aborting it, and killing it.
GRACE = bounded.EVIDENCE_SECONDS + bounded.ABORT_SECONDS + 8
VICTIM, NEXT, SIDE = "driver-facts", "tiers", "door-runtime"

# Of each fault: the result, and what the line on the row must say.
EXPECTED = {
    "hang": ("TIME OUT", r"still running after 4 s"),
    "hang-deaf": ("TIME OUT", r"still running after 4 s"),
    "hang-family": ("TIME OUT", r"still running after 4 s"),
    "stop": ("TIME OUT", r"still running after 4 s"),
    "crash": ("DIED", r"SIGSEGV.*1 right"),
    "killed": ("DIED", r"SIGKILL"),
    "grandchild": ("ok", r"left 1 processes behind.*1 right"),
    "escaped": ("ok", r"left 1 processes behind.*1 right"),
    "nested-hang": ("FAILED", r"stopped: time"),
    "nested-long": ("TIME OUT", r"still .* after .*1 right"),
    "wrong-long": ("WRONG", r"wrong: 4096 words: 17 differ"),
    "wrong": ("WRONG", r"wrong: 4096 words: 17 differ"),
    "lie": ("FAILED", r"exit status 3"),
    "partial": ("FAILED", r"1 lines of its findings cannot be read"),
    "incomplete": ("FAILED", r"incomplete"),
    "silent": ("NO RESULT", r"without a finding"),
    "garbage": ("FAILED", r"lines of its findings cannot be read"),
    "markup": ("ok", r"a / b c \?\[31m `d`: x+ \.\.\..*1 right"),
    "data": ("ok", r"1 right"),
    "flood": ("STOPPED", r"flooded"),
    "memory": ("FAILED", r"exit status 1"),
    "error": ("FAILED", r"exit status 1.*1 right"),
    "no-folder": ("NO RESULT", r"without a finding"),
    "unreadable": ("FAILED", r"exit status 1"),
}
# Faults that another one covers nearly; the quick rehearsal leaves them out.
SLOW = {"wrong-long", "hang", "hang-family", "stop"}


def start(output, *arguments, fault="", memory="2GiB", **options):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("SPILLWAY", "LD_"))}
    env |= {VARIABLE: fault, **options}
    return subprocess.Popen(
        [sys.executable, "-B", HERE / "check.py", ROOT, "--simulated", memory, "--tiny",
         "--output", output, *arguments],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def only(names):
    """The words that choose these rows."""
    return [word for name in names for word in ("--only", name)]


@unittest.skipIf(SANITIZED, "the rows run programs bare, and some run out of memory on purpose")
class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = pathlib.Path(folder.name) / "output"

    def check(self, *arguments, **options):
        """(exit status, rows by name, page, seconds) of one call."""
        begin = time.monotonic()
        child = start(self.output, *arguments, **options)
        out, err = child.communicate(timeout=900)
        self.assertEqual(err, "", out)
        _, rows = page.read(self.output)
        text = (self.output / "page.md").read_text()
        return child.returncode, {row["name"]: row for row in rows}, text, \
            time.monotonic() - begin

    def line(self, text, row):
        """The one line on a row; the page must have exactly one, of four cells."""
        found = re.findall(rf"^\| {row} (?:\|[^|\n]*){{3}}\|$", text, re.MULTILINE)
        self.assertEqual(len(found), 1, text)
        return found[0]

    def members(self):
        """The names in the archive, which must be readable to its end."""
        path = self.output / "evidence.tar.gz"
        with tarfile.open(path) as file:
            names = file.getnames()
        subprocess.run(["tar", "-tzf", path], check=True, capture_output=True)
        return names


class Faults(Case):
    def go_wrong(self, kind):
        """Runs a row that goes wrong, and one after it. (fault, status, output, seconds)"""
        output = self.output / kind
        begin = time.monotonic()
        child = start(output, "--only", VICTIM, "--only", NEXT, "--row-seconds", str(ROW_SECONDS),
                      fault=f"{VICTIM}:{kind}")
        _, err = child.communicate(timeout=300)
        return kind, child.returncode, err, time.monotonic() - begin

    def check_fault(self, kind, status, err, seconds):
        """The page and the archive of a row that went wrong."""
        result, says = EXPECTED[kind]
        rows = {row["name"]: row for row in page.read(self.output)[1]}
        text = (self.output / "page.md").read_text()
        line = self.line(text, VICTIM)
        self.assertEqual(err, "")
        self.assertEqual(rows[VICTIM]["result"], result, line)
        self.assertRegex(line, says)
        self.assertEqual(rows[NEXT]["result"], "ok", text)
        self.assertEqual(status, 0 if result == "ok" else 1)
        self.assertRegex(text, rf"- bad: {VICTIM if result != 'ok' else 'none'}\n")
        self.assertLess(seconds, 3 * ROW_SECONDS + GRACE + 20)
        self.assertLess(rows[VICTIM]["seconds"], ROW_SECONDS + 2)
        for row in re.findall(r"^\| .* \|$", text.partition(f"## {VICTIM}")[2], re.MULTILINE):
            self.assertEqual(row.count("|"), 4, row)
        self.assertNotRegex(text, r"[\x00-\x08\x0b-\x1f\x7f]")
        self.assertLess((self.output / "evidence.tar.gz").stat().st_size, archive.ARCHIVE_BYTES)
        self.assertEqual(rows[VICTIM].get("data"), {"bytes": [1, 2], "more": {"seconds": 0.5}}
                         if kind == "data" else None)
        self.check_evidence(kind, rows[VICTIM]["notes"], self.members())

    def check_evidence(self, kind, notes, names):
        if kind != "no-folder":
            self.assertIn(f"{VICTIM}/stderr", names)
        if kind == "crash":
            self.assertIn("again: DIED SIGSEGV", notes)
            self.assertIn("Segmentation fault", self.extract(f"{VICTIM}/stderr"))
        if kind == "hang-deaf":
            process = [name for name in names if "/proc-" in name]
            self.assertEqual(len(process), 1, names)
            self.assertIn("wchan", self.extract(process[0]))
        if kind == "hang":
            self.assertIn("most recent call first", self.extract(f"{VICTIM}/stderr"))

    def test_every_fault_is_expected(self):
        self.assertEqual(set(EXPECTED), set(KINDS))
        self.assertGreaterEqual(len(EXPECTED), 12)

    def test_faults(self):
        self.output.mkdir()
        kinds = sorted(set(KINDS) - (set() if LONG else SLOW))
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(self.go_wrong, kinds))
        everything = self.output
        for kind, status, err, seconds in found:
            with self.subTest(kind):
                self.output = everything / kind
                self.check_fault(kind, status, err, seconds)
        self.assertEqual(await_sleepers(FOREVER, 0), [])

    def extract(self, name):
        with tarfile.open(self.output / "evidence.tar.gz") as file:
            return file.extractfile(name).read().decode(errors="replace")


class Driver(Case):
    """A driver that misbehaves, by options of the simulated one."""

    def one(self, row, **options):
        _, rows, text, _ = self.check(*only([row]), **options)
        return rows[row], self.line(text, row)

    def test_a_call_that_fails(self):
        row, line = self.one("tiers", SPILLWAY_SIM_FAIL="cuMemSetAccess:3:700")
        self.assertEqual(row["result"], "FAILED", line)
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS", line)

    def test_a_driver_that_lies(self):
        """Copies of a driver that moves no data, and says that it did."""
        row, line = self.one("crossing-copies", SPILLWAY_SIM_PAYLOAD="64KiB")
        self.assertEqual(row["result"], "WRONG", line)
        self.assertRegex(line, r"bytes differ")

    def test_moves_that_lose_content(self):
        """The same for the rows on spilling that move content themselves."""
        names = ("unmap-then-copy", "poll-cost", "both-ways-small", "host-pages")
        _, rows, text, _ = self.check(*only(names), SPILLWAY_SIM_PAYLOAD="4KiB")
        for name in names:
            self.assertEqual(rows[name]["result"], "WRONG", self.line(text, name))
        self.assertRegex(self.line(text, "unmap-then-copy"), r"rounds, [1-9]\d* words differ")

    def test_a_fault_at_the_launch(self):
        """The row says which call was the first to say it."""
        row, line = self.one("fault-kind", SPILLWAY_SIM_FAIL="cuLaunchKernel:2:719")
        self.assertEqual(row["result"], "ok", line)
        said = {(finding["subject"], finding["value"]) for finding in row["findings"]}
        self.assertIn(("write-evicted: seen first at", "cuLaunchKernel"), said)
        self.assertIn(("write-evicted: error", "CUDA_ERROR_LAUNCH_FAILED"), said)
        self.assertIn("write-evicted: the kernel's log", {subject for subject, _ in said})

    def test_managed_memory_that_does_not_fit(self):
        row, line = self.one("managed", memory="64MiB")
        self.assertEqual(row["result"], "skipped", line)
        self.assertRegex(line, r"managed memory: \d+ MiB are free, 64 MiB are needed")

    def test_a_driver_that_refuses_batches(self):
        """The other ways are measured all the same."""
        row, line = self.one("managed", SPILLWAY_SIM_FAIL="cuMemPrefetchBatchAsync:1+:801")
        self.assertEqual(row["result"], "ok", line)
        said = {finding["subject"]: finding["value"] for finding in row["findings"]}
        self.assertEqual(said["batch of prefetches in by 64 MiB"],
                         "refused: CUDA_ERROR_NOT_SUPPORTED")
        self.assertIn("discard out by 64 MiB: rate", said)

    def test_a_driver_without_host_chunks(self):
        row, line = self.one("crossing-copies", SPILLWAY_SIM_HOST_NUMA="off")
        self.assertEqual(row["result"], "skipped", line)
        self.assertIn("cuMemCreate at node 0", line)

    def test_a_driver_that_unmaps_one_by_one(self):
        row, line = self.one("range-cost", SPILLWAY_SIM_UNMAP="chunk")
        self.assertEqual(row["result"], "ok", line)
        self.assertIn({"state": "figure", "subject": "device, 16 chunks: one unmap",
                       "value": "CUDA_ERROR_INVALID_VALUE"}, row["findings"])

    def test_a_driver_without_events_of_contexts(self):
        row, line = self.one("record-event", SPILLWAY_SIM_FAIL="cuCtxRecordEvent:1+:801")
        self.assertEqual(row["result"], "FAILED", line)
        self.assertIn("CUDA_ERROR_NOT_SUPPORTED", line)

    def test_a_launch_that_is_measured(self):
        """The probe asks for a kernel once, so that no later launch contains the question."""
        row, line = self.one("small-calls", SPILLWAY_SIM_FAIL="cuModuleGetFunction:2+:500")
        self.assertEqual(row["result"], "not measurable", line)

    def test_no_times_of_a_simulated_gpu(self):
        row, _ = self.one("call-cost")
        self.assertEqual(row["result"], "not measurable")
        self.assertEqual({finding["state"] for finding in row["findings"]},
                         {"unmeasurable", "end"})


class Calls(Case):
    def test_the_end_of_the_call(self):
        """Rows that have no time left say how to run them."""
        status, rows, text, seconds = self.check(
            "--only", VICTIM, "--only", NEXT, "--seconds", "9", fault=f"{VICTIM}:hang")
        self.assertRegex(self.line(text, VICTIM), r"not run .*cut short.*--only driver-facts")
        self.assertRegex(self.line(text, NEXT), r"not run .*no time left; --only tiers")
        self.assertLess(seconds, 9 + 8)
        self.assertEqual(status, 0)

    def test_a_program_that_is_cut(self):
        """A row whose program the end of the call cuts has not run, alone and beside others; one
        that has seen something wrong says so."""
        for row, beside in ((VICTIM, ()), (SIDE, ("--at-once", "2"))):
            _, rows, text, seconds = self.check("--seconds", "14", *beside, "--only", row,
                                                fault=f"{row}:nested-long")
            self.assertRegex(self.line(text, row), rf"not run .*cut short.*--only {row}.*1 right")
            self.assertLess(seconds, 14 + 8)
        _, rows, _, _ = self.check("--seconds", "10", "--only", VICTIM,
                                   fault=f"{VICTIM}:wrong-long")
        self.assertEqual(rows[VICTIM]["result"], "WRONG")

    def test_a_program_that_takes_all_of_its_row(self):
        """That is the row's fault, not the clock's."""
        _, _, text, _ = self.check("--row-seconds", "6", "--only", VICTIM,
                                   fault=f"{VICTIM}:nested-long")
        self.assertRegex(self.line(text, VICTIM), r"TIME OUT .*still at work.*1 right")

    def test_told_to_stop(self):
        """The page is whole when the check itself is ended, and no process stays."""
        child = start(self.output, "--only", VICTIM, fault=f"{VICTIM}:hang-deaf")
        deadline = time.monotonic() + 30
        while not page.read(self.output)[1] and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=30)
        self.assertEqual((child.returncode, err), (0, ""), out)
        self.assertRegex(self.line((self.output / "page.md").read_text(), VICTIM),
                         r"not run .*ended by SIGTERM")
        self.assertEqual(processes.members(child.pid), [])

    def test_told_to_stop_beside(self):
        """Rows side by side: what has ended stays, what runs and what waits has not run."""
        child = start(self.output, "--at-once", "2", "--only", SIDE, "--only", "programs",
                      "--only", "exits", "--only", "exhausted",
                      fault="programs:hang-deaf,exits:hang")
        deadline = time.monotonic() + 60
        while len(page.read(self.output)[1]) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=30)
        self.assertEqual((child.returncode, err), (0, ""), out)
        rows = {row["name"]: row for row in page.read(self.output)[1]}
        self.assertEqual({name: row["result"] for name, row in rows.items()},
                         {SIDE: "ok", "programs": "not run", "exits": "not run",
                          "exhausted": "not run"}, out)
        self.assertEqual(processes.members(child.pid), [])
        self.assertEqual(list(self.output.glob("beside-*")), [])

    def test_killed(self):
        """Even SIGKILL leaves a page that names the row that ran."""
        child = start(self.output, "--only", NEXT, "--only", VICTIM,
                      fault=f"{NEXT}:hang")
        deadline = time.monotonic() + 30
        while len(page.read(self.output)[1]) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        rows = processes.members(child.pid)
        everything = [pid for pid in processes.table() if pid in rows] + [
            pid for pid, row in processes.table().items() if row[0] == child.pid]
        child.kill()
        processes.signal_all(set(everything), signal.SIGKILL)
        child.communicate(timeout=30)
        text = (self.output / "page.md").read_text()
        self.assertRegex(self.line(text, VICTIM), r"\| ok \|")
        self.assertRegex(self.line(text, NEXT), r"began .*no end is recorded")
        self.assertIn(f"{VICTIM}/stdout", self.members())

    def test_low_memory(self):
        """A row that leaves too little memory is stopped before the kernel chooses a victim."""
        _, rows, text, _ = self.check("--only", VICTIM, fault=f"{VICTIM}:hang",
                                      SPILLWAY_GPU_CHECK_FLOOR=str(1 << 60))
        self.assertEqual(rows[VICTIM]["result"], "STOPPED")
        self.assertRegex(self.line(text, VICTIM), r"it took the machine's memory")

    def test_rows_at_once(self):
        """Two rows in checks of their own, of which one goes wrong, and then one alone; again in
        the same folder."""
        words = ("--at-once", "2", "--only", "door-runtime", "--only", "exits", "--only", NEXT)
        self.assertEqual(self.check(*words)[0], 0)
        status, rows, text, _ = self.check(*words, fault="door-runtime:wrong")
        self.assertEqual(status, 1)
        self.assertEqual({name: row["result"] for name, row in rows.items()},
                         {"door-runtime": "WRONG", "exits": "ok", NEXT: "ok"})
        self.assertEqual(list(rows)[0], NEXT)
        self.assertEqual(list(self.output.glob("beside-*")), [])
        for name in rows:
            self.line(text, name)
        self.assertLessEqual(set(rows), {name.partition("/")[0] for name in self.members()})

    def test_list(self):
        child = start(self.output, "--list")
        out, _ = child.communicate(timeout=30)
        self.assertEqual(len(out.splitlines()), len(TABLE))
        self.assertFalse(self.output.exists())

    def test_none_at_once(self):
        child = start(self.output, "--at-once", "0")
        self.assertIn("--at-once 0: at least 1 is expected", child.communicate(timeout=60)[1])
        self.assertEqual(child.returncode, 2)

    def test_unknown_row(self):
        child = start(self.output, "--only", "no-such-row")
        _, err = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 2)
        self.assertIn("no row no-such-row", err)


class Plan(Case):
    """The plan of few rows: an earlier page settles all others."""
    ROWS = (VICTIM, "host-nodes", NEXT, "parameters", "door-driver", "programs", SIDE)

    def setUp(self):
        super().setUp()
        self.earlier = self.output.parent / "earlier"
        self.earlier.mkdir()
        self.settle_all_but(self.ROWS)

    def settle_all_but(self, rows):
        code = fingerprint.of_tree()
        page.write(self.earlier, {"gpu": "a card", "date": "2026-01-01"}, [
            {"name": name, "what": "", "result": "ok", "seconds": 1.0, "reason": "",
             "findings": [], "notes": [], "card": "a card", "when": "2026-01-01T10:00:00",
             "code": code[name]} for name in TABLE if name not in rows])

    def call(self, number, output, *after, fault="", **options):
        """{row: result} of a call of the plan after these pages."""
        child = start(output, "--call", str(number), "--after", self.earlier, *after,
                      *[word for key, value in options.items()
                        for word in (f"--{key.replace('_', '-')}", str(value))], fault=fault)
        out, err = child.communicate(timeout=300)
        self.assertEqual(err, "", out)
        return {row["name"]: row["result"] for row in page.read(output)[1]}

    def printed(self, *words):
        child = start(self.output, "--plan", *words)
        out, err = child.communicate(timeout=60)
        self.assertEqual((child.returncode, err), (0, ""))
        self.assertFalse(self.output.exists())
        return out

    def test_it_is_printed(self):
        """Call, place, row, seconds, how, what it decides; what is left out, what is settled."""
        text = self.printed()
        self.assertRegex(text, r"\Aseconds: as on NVIDIA H100 .*; ~: estimated\n\ncall 1: \d+ "
                               r"rows, about \d+ s of at most 300 s\n")
        for row in TABLE.values():
            self.assertEqual(len(re.findall(rf"(?m)^ +(?:\d+ +)?{row.name} +~?\d+ s  "
                                            rf"(?:(?:alone|beside) +{re.escape(row.decides)}$|what "
                                            r"is before it leaves \d+ s in call 1 and \d+ s in "
                                            r"call 2$)", text)), 1, f"{row.name}\n{text}")
        text = self.printed("--after", self.earlier / "page.md")
        self.assertRegex(text, r"(?m)^      spill +ok, a card, 2026-01-01$")
        self.assertRegex(text, r"call 1: 7 rows(.|\n)*call 2: 0 rows")

    def test_three_partial_runs(self):
        """Rows that hang, die, lie, are cut and do not fit; each run goes on where those before it
        stopped, and the page of all has the end of each row."""
        one, two, three = (self.output.parent / name for name in ("1", "2", "3"))
        found = self.call(1, one, seconds=20, fault=f"{VICTIM}:lie,host-nodes:killed,"
                          "parameters:hang")
        cut = dict.fromkeys(("parameters", "door-driver", "programs", SIDE), "not run")
        self.assertEqual(found, {VICTIM: "FAILED", "host-nodes": "DIED", NEXT: "ok"} | cut)
        found = self.call(2, two, one, seconds=25,
                          fault=f"parameters:wrong,programs:crash,{SIDE}:nested-long")
        self.assertEqual(found, cut | {"parameters": "WRONG", "programs": "DIED",
                                       "door-driver": "ok"})
        found = self.call(2, three, one / "rows.json", two / "page.md")
        self.assertEqual(found, {SIDE: "ok"})
        pages = [self.earlier, one, two, three]
        self.assertRegex(self.printed("--after", *pages), r"call 1: 0 rows(.|\n)*call 2: 0 rows")
        _, _, text, _ = self.check("--join", *pages)
        _, rows = page.load(self.output)
        self.assertEqual({row["name"]: row["result"] for row in rows}, dict.fromkeys(TABLE, "ok") |
                         {VICTIM: "FAILED", "host-nodes": "DIED", "parameters": "WRONG",
                          "programs": "DIED"})
        self.assertRegex(self.line(text, "spill"), r"a card, 2026-01-01; ")
        self.assertRegex(self.line(text, SIDE), r"simulated GPU of 2GiB, \d{4}-\d\d-\d\d; ")

    def test_no_second_run_at_the_cost_of_others(self):
        """A row that died runs again if the others of the call still have their time."""
        fault = f"{VICTIM}:crash,doctor:data,exhausted:data,exits:data"
        for others, again in ((("doctor", "exhausted", "exits"), False), ((), True)):
            output = self.output.parent / str(again)
            self.settle_all_but((VICTIM, *others))
            found = self.call(1, output, seconds=80, fault=fault)
            self.assertEqual(found, {VICTIM: "DIED"} | dict.fromkeys(others, "ok"))
            notes = page.read(output)[1][0]["notes"]
            self.assertEqual("again: DIED SIGSEGV" in notes, again)

    def test_what_cannot_be_read(self):
        child = start(self.output, "--plan", "--after", self.output.parent / "nothing")
        _, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 2)
        self.assertRegex(err, r"\Ascripts/gpu-check: .*nothing: .*No such file.*\n\Z")

    def test_a_rehearsal_settles_nothing_on_a_card(self):
        page.write(self.earlier, {"gpu": "a", "date": "2026-01-01", "simulated": True}, [])
        for name in ("page.md", "rows.json"):
            done = subprocess.run([sys.executable, "-B", HERE / "check.py", ROOT, "--plan",
                                   "--after", self.earlier / name], text=True, capture_output=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("a page of a real GPU is expected, this is a rehearsal", done.stderr)

    def test_a_bundle_of_another_tree(self):
        """It is told, with one row that it is wrong for."""
        for code, says in (({}, rf"not of this tree, for {len(TABLE)} rows \({next(iter(TABLE))} "),
                           (fingerprint.of_tree() | {NEXT: "0"}, rf"for 1 rows \({NEXT} "),
                           (fingerprint.of_tree(), r"\A\Z")):
            path = self.output / fingerprint.FILE
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(code))
            done = subprocess.run([sys.executable, "-B", HERE / "check.py", self.output, "--plan"],
                                  text=True, capture_output=True)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stderr, says)

    def test_rows_and_a_plan(self):
        child = start(self.output, "--plan", "--only", NEXT)
        self.assertIn("one of them is expected", child.communicate(timeout=60)[1])
        self.assertEqual(child.returncode, 2)


class Rows(Case):
    def test_documented(self):
        """docs/dev/gpu-check.md says of every row what follows from it, and of no other."""
        text = (HERE.parents[1] / "docs/dev/gpu-check.md").read_text()
        text = text.partition("## What follows")[2]
        self.assertEqual(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE), list(TABLE))

    def test_each_row_has_its_place(self):
        orders = [row.order for row in TABLE.values()]
        self.assertEqual(orders, sorted(set(orders)))

    def test_every_section_of_the_probe_has_a_row(self):
        env = os.environ | {"LD_LIBRARY_PATH": str(ROOT / "sim")}
        done = subprocess.run([ROOT / "tests/gpu/probe", "--list"], env=env, text=True,
                              capture_output=True, check=True)
        text = "".join(path.read_text() for path in (HERE / "rows").glob("*.py"))
        self.assertEqual([name for name in done.stdout.split()
                          if name != "alive" and f'"{name}"' not in text], [])

    def test_data_of_the_rows_on_spilling(self):
        """Every name that such a row documents is the end of one of its data, which have no values
        on the simulated GPU."""
        names = [row.name for row in TABLE.values() if row.function.__module__ == spilling.__name__]
        _, rows, text, _ = self.check(*only(names))
        for name in names:
            documented = re.findall(r"\b\w+_(?:us|ms|times|gb_s)\b", TABLE[name].function.__doc__)
            data = rows[name]["data"]
            self.assertEqual(set(data.values()), {None}, self.line(text, name))
            self.assertEqual([word for word in documented or ["none"]
                              if not any(key.endswith(word) for key in data)], [], name)

    def test_every_program_is_bundled(self):
        bundle = (HERE.parents[1] / "scripts/bundle").read_text().partition("for name in")[2]
        names = re.findall(r"[\w./]+", re.sub(r"[{},\\\n]+", " ", bundle.partition("; do")[0]))
        for path in (HERE / "rows").glob("*.py"):
            for name in re.findall(r'program\("(\w+)"\)', path.read_text()):
                self.assertIn(name, [other.rpartition("/")[2] for other in names], path)

    def run_rows(self, choose, **options):
        names = [row.name for row in TABLE.values() if choose(row)]
        _, rows, text, _ = self.check(*only(names), "--at-once", "2", **options)
        self.assertEqual(set(rows), set(names))
        for row in rows.values():
            self.assertIn(row["result"], findings.FINE, self.line(text, row["name"]))
            self.assertNotEqual(row["result"], "not run")
            self.line(text, row["name"])
        self.assertIn("a rehearsal on the simulated GPU", text)

    def test_the_probe(self):
        self.run_rows(lambda row: "probe" in row.depends)

    @unittest.skipUnless(LONG, "--long")
    def test_the_others(self):
        # The largest recorded trace takes 5.2 GiB.
        self.run_rows(lambda row: "probe" not in row.depends, memory="8GiB")


class Findings(unittest.TestCase):
    """Ends of rows that cannot be rehearsed."""

    def test_processes_that_cannot_be_killed(self):
        ending = bounded.Ending(None, 3.0, "time", stuck=(17, 18))
        self.assertEqual(findings.judge(ending, [], 0),
                         ("STUCK", "2 processes cannot be killed"))

    def test_a_signal_to_all_processes(self):
        """It ends rows as well, which is no fault of theirs."""
        for number, result in ((signal.SIGTERM, "not run"), (signal.SIGSEGV, "DIED")):
            self.assertEqual(findings.judge(bounded.Ending(-number, 3.0), [], 0)[0], result)

    def test_the_seconds_of_a_program(self):
        """Before the end of the row it is looked at; before the end of the call only ended."""
        with tempfile.TemporaryDirectory() as folder:
            for cut, least, most in ((False, 169, 170), (True, 195, 196)):
                one = session.Session(None, pathlib.Path(folder), time.monotonic() + 200, cut)
                self.assertTrue(least < one.most() <= most, one.most())

    def test_a_program_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            ending = bounded.run(["/no/such/program"], pathlib.Path(folder), 5)
        self.assertEqual(findings.judge(ending, [], 0)[0], "FAILED")

    def test_data_of_the_probe(self):
        for subject, value, expected in (
                ("launch alone, p50", "3.2 us", {"launch_alone_p50_us": 3.2}),
                ("on both: set-access", "1e-05 us with two submissions",
                 {"on_both_set_access_us": 1e-5}),
                ("copy", "not measurable on the simulated GPU (GB/s)", {"copy_gb_s": None}),
                ("chunks", "3 of 2 MiB", {}), ("later", "-0.5 us", {"later_us": -0.5}),
                ("error", "CUDA_SUCCESS", {}), ("ratio", "nan times", {})):
            self.assertEqual(session.datum(subject, value), expected)

    def test_data_that_cannot_be_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "data.json"
            self.assertEqual(findings.data(path), (None, ""))
            for text, says in (("[1]", "cannot be read"), ("{", "cannot be read"),
                               (json.dumps({"x": "x" * (256 << 10)}), "more than 256 KiB")):
                path.write_text(text)
                self.assertIn(says, findings.data(path)[1])

    def test_an_archive_that_was_cut(self):
        """What was added before stays readable."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "evidence.tar.gz")
            grown = archive.Archive(path)
            grown.add_text("first", "1")
            grown.add_text("second", os.urandom(9000).hex())
            os.truncate(path, os.path.getsize(path) - 100)
            with tarfile.open(path) as file:
                self.assertEqual(file.next().name, "first")


def main():
    program = unittest.main(argv=[word for word in sys.argv if word != "--long"], exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    skipped = len(program.result.skipped)
    sys.exit(77 if program.result.testsRun > 0 and skipped == program.result.testsRun else 0)


if __name__ == "__main__":
    main()
