"""What a row does and reports: it starts programs, and notes findings in a file as they come."""
import dataclasses
import itertools
import json
import re
import time

import bounded
from setting import SOURCE

VERSION = SOURCE / "tests/gpu/scripts/version.py"
CUT_GRACE = 4.0  # seconds to end a program when the clock of the call ends it
LINE = re.compile(r"(ok|figure|wrong|failed|skipped|unmeasurable)\t([^\t]+)\t(.*)")
# What the probe measured, or cannot measure here, with its unit.
UNIT = "(?P<unit>ns|us|ms|s|GB/s|times)"
MEASURED = re.compile(rf"(?P<number>-?[\d.]+(e[-+]\d+)?) {UNIT}( .*)?")
UNMEASURED = re.compile(rf"not measurable on the simulated GPU \({UNIT}.*\)")


def datum(subject, value):
    """{name: number} of what the probe measured, {} of any other finding. The name is the subject
    and the unit, in small letters, digits and single underscores: "launch alone, p50" in us is
    launch_alone_p50_us. None where the simulated GPU has no answer."""
    match = MEASURED.fullmatch(value) or UNMEASURED.fullmatch(value)
    if match is None:
        return {}
    name = re.sub(r"[^a-z0-9]+", "_", f"{subject} {match['unit']}".lower()).strip("_")
    return {name: float(match["number"]) if "number" in match.groupdict() else None}


@dataclasses.dataclass
class Run:
    """A program that has run. status: 124 when it was stopped, 127 when it could not start, -n
    when it died of signal n; stats: its statistics, or None."""
    status: int
    out: str
    err: str
    stats: dict | None
    seconds: float
    stopped: str = ""
    ended: float = 0.0  # of time.monotonic()

    def why(self):
        """How it failed, in one line."""
        last = (self.err.strip().splitlines() or self.out.strip().splitlines() or ["no output"])[-1]
        how = f"stopped: {self.stopped}" if self.stopped else f"exit status {self.status}"
        return f"{how}: {last[:200]}"

    def device(self, key, ordinal=0):
        return self.stats["devices"][ordinal].get(key, 0) if self.stats else 0


@dataclasses.dataclass
class Job:
    """A PyTorch script to run: Python and its words; the rest as for Session.run."""
    words: list
    preload: bool = True
    options: dict = dataclasses.field(default_factory=dict)


class OutOfTime(Exception):
    """The row's time was over before one of its programs had taken its own."""


class Session:
    """One row at work, in a folder of its own that it may fill. end: when it must be done, of
    time.monotonic(); cut: because the call ends then."""

    def __init__(self, setting, folder, end, cut=False):
        self.setting = setting
        self.folder = folder
        self.end = end
        self.cut = cut
        self.runs = itertools.count(1)
        self.attached = {}

    # Each notes one finding at once: the next step may be the last.

    def note(self, state, subject, value=""):
        line = json.dumps({"state": state, "subject": str(subject), "value": value})
        with open(self.folder / "findings.jsonl", "a") as file:
            file.write(line + "\n")

    def ok(self, subject, value=""):
        self.note("ok", subject, value)

    def figure(self, subject, value=""):
        self.note("figure", subject, value)

    def wrong(self, subject, value=""):
        self.note("wrong", subject, value)

    def failed(self, subject, value=""):
        self.note("failed", subject, value)

    def skip(self, subject, value=""):
        self.note("skipped", subject, value)

    def unmeasurable(self, subject):
        self.note("unmeasurable", subject, "not measurable on the simulated GPU")

    def check(self, good, subject, value=""):
        """ok or wrong."""
        self.note("ok" if good else "wrong", subject, value)
        return good

    def timing(self, subject, value):
        """A figure that a clock gave: the simulated GPU has none."""
        if self.setting.simulated:
            self.unmeasurable(subject)
        else:
            self.figure(subject, value)

    def data(self, found):
        """Attaches numbers to the row, for programs: a dict that the page's rows.json keeps."""
        self.attached |= found
        (self.folder / "data.json").write_text(json.dumps(self.attached))

    def left(self):
        return max(0.0, self.end - time.monotonic())

    def most(self):
        """The seconds that a program may take: one that hangs must be looked at and ended before
        the row's own time is over, one that is cut only ended."""
        return self.left() - (CUT_GRACE if self.cut else min(30.0, self.left() / 4))

    def run(self, command, preload=False, seconds=120, options=None, cwd=None):
        """Runs a program, bare or under spillway, with further variables. Its output, log and
        statistics stay in the row's folder. Without time left it raises OutOfTime."""
        name = f"{next(self.runs):02d}-"
        words, more = self.setting.command(command, preload)
        stats = self.folder / f"{name}stats.json"
        env = self.setting.environment() | more
        if preload:
            env |= {"SPILLWAY_SUMMARY": "off", "SPILLWAY_STATS": str(stats),
                    "SPILLWAY_LOG": f"info:{self.folder / name}log"}
        env |= options or {}
        most = self.most()
        if most < 1:
            raise OutOfTime(" ".join(map(str, command)))
        bound = min(seconds, most)
        ending = bounded.run(words, self.folder, bound, env=env, name=name, cwd=cwd,
                             evidence=min(bounded.EVIDENCE_SECONDS, self.left() - bound - 5))
        if ending.stopped == "time" and bound < seconds:
            raise OutOfTime(" ".join(map(str, command)))
        status = 124 if ending.stopped else 127 if ending.status is None else ending.status
        return Run(status, self.text(name + "stdout"), self.text(name + "stderr") or ending.error,
                   self.json(stats), ending.seconds, ending.stopped, ending.ended)

    def in_turn(self, jobs, seconds=120):
        """Runs PyTorch scripts, one after the other. Their Runs, in order."""
        return [self.run(job.words, job.preload, seconds, job.options) for job in jobs]

    def text(self, name):
        with open(self.folder / name, "rb") as file:
            return file.read(8 << 20).decode(errors="replace")

    def torch(self):
        """The Python that has PyTorch; without one the row notes that it is skipped. Its scripts
        are forked from a process that has imported PyTorch: what needs a fresh one takes
        setting.python()."""
        python = self.setting.forks or self.setting.python()
        run = self.run([python, VERSION], seconds=60)
        if run.status != 0:
            self.skip("PyTorch", f"{self.setting.python()} has none with a GPU: {run.why()}")
            return None
        self.figure("PyTorch", run.out.strip())
        return python

    def json(self, path):
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError):
            return None

    def program(self, name):
        """The path of a test program; without it the row notes that it is skipped."""
        path = self.setting.program(name)
        if path is None:
            self.skip(name, "not built here, and not in the bundle")
        return path

    def probe(self, section, *arguments, label="", seconds=60, preload=False, options=None):
        """Runs a section of the probe and passes its findings on, behind the label; what it
        measured also becomes data. Returns the seconds between its end and the end of its process;
        None if it ended badly."""
        program = self.program("probe")
        if program is None:
            return None
        words = [program, *(["--tiny"] if self.setting.tiny else []), section, *arguments]
        run = self.run(words, preload, seconds, options)
        found = {}
        for line in run.out.splitlines():
            match = LINE.fullmatch(line)
            if match:
                state, subject, value = match.groups()
                self.note(state, f"{label}{subject}", value)
                found |= datum(f"{label}{subject}", value)
        if found:
            self.data(found)
        if run.status != 0:
            self.failed(" ".join(["probe", section, *map(str, arguments)]), run.why())
            return None
        clock = re.search(r"^clock\t([\d.]+)$", run.out, re.MULTILINE)
        return max(0.0, run.ended - float(clock.group(1))) if clock else 0.0
