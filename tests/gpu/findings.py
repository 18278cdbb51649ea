"""Findings: what a row's process reports, one JSON object a line, and what they add up to.

A finding has a state, a subject and a value:

    ok             the answer is right
    figure         a measurement; nothing to be right or wrong
    wrong          data or an answer that cannot be: it decides the row
    failed         a step that did not work
    skipped        something that this machine lacks
    unmeasurable   the simulated GPU has no answer to this
    cut            the row's time was over in the middle of it
    end            the row's process came to its end

The file may come from a process that died or went mad, so nothing in it is taken on trust."""
import dataclasses
import json
import math
import re
import signal

STATES = ("ok", "figure", "wrong", "failed", "skipped", "unmeasurable", "cut", "end")
BYTES = 1 << 20
MOST = 400
LENGTH = 300
DATA_BYTES = 256 << 10

# The results of rows; those after "ok" are bad, but for the last four.
BAD = ("WRONG", "FAILED", "DIED", "TIME OUT", "STOPPED", "STUCK", "NO RESULT")
FINE = ("ok", "skipped", "not measurable", "not run")


@dataclasses.dataclass
class Finding:
    state: str
    subject: str
    value: str = ""


def clean(text):
    """One line without control characters, cut to a readable length."""
    text = re.sub(r"\s+", " ", str(text))
    text = "".join(char if char.isprintable() else "?" for char in text).strip()
    return text if len(text) <= LENGTH else text[:LENGTH] + " ..."


def number(value):
    """A figure as people read it; None for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def parse(line):
    """The finding in one line, or None."""
    try:
        found = json.loads(line)
        state, subject, value = found["state"], found["subject"], found.get("value", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if state not in STATES or not isinstance(subject, str):
        return None
    if not isinstance(value, str):
        value = number(value)
        if value is None:
            return None
    return Finding(state, clean(subject), clean(value))


def read(path):
    """(findings, number of lines that cannot be read) of a file; no findings without one."""
    try:
        with open(path, "rb") as file:
            data = file.read(BYTES + 1)
    except OSError:
        return [], 0
    lines = data[:BYTES].decode(errors="replace").splitlines()
    found = [parse(line) for line in lines if line.strip()]
    good = [finding for finding in found if finding is not None]
    return good[:MOST], len(found) - len(good) + max(0, len(good) - MOST) + (len(data) > BYTES)


def data(path):
    """(what a row attached for programs, or None; what is wrong with it, or "")"""
    try:
        with open(path, "rb") as file:
            text = file.read(DATA_BYTES + 1)
    except OSError:
        return None, ""
    if len(text) > DATA_BYTES:
        return None, f"its data.json has more than {DATA_BYTES >> 10} KiB"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return (found, "") if isinstance(found, dict) else (None, "its data.json cannot be read")


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# Signals that somebody sends to all processes, or a terminal to its own.
FROM_OUTSIDE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
STOPPED = {"memory": "it took the machine's memory", "output": "it flooded its output"}


def judge(ending, found, unreadable):
    """(result, reason) of a row: how its process ended outranks what it claimed."""
    states = {finding.state for finding in found}
    if ending.stuck:
        return "STUCK", f"{len(ending.stuck)} processes cannot be killed"
    if ending.stopped == "time":
        return "TIME OUT", f"still running after {ending.seconds:.0f} s"
    if ending.stopped:
        return "STOPPED", STOPPED[ending.stopped]
    if ending.status is None:
        return "FAILED", ending.error or "it could not be started"
    if -ending.status in FROM_OUTSIDE:
        return "not run", f"ended from outside by {signal_name(-ending.status)}"
    if ending.status < 0:
        return "DIED", signal_name(-ending.status)
    if "wrong" in states:
        return "WRONG", ""
    if "cut" in states:
        return "TIME OUT", f"still at work after {ending.seconds:.0f} s"
    if "failed" in states or ending.status != 0:
        return "FAILED", f"exit status {ending.status}" if ending.status != 0 else ""
    if unreadable:
        return "FAILED", f"{unreadable} lines of its findings cannot be read"
    if not states - {"end"}:
        return "NO RESULT", "it ended without a finding"
    if "end" not in states:
        return "FAILED", "its findings are incomplete"
    if states & {"ok", "figure"}:
        return "ok", ""
    return ("not measurable" if "unmeasurable" in states else "skipped"), ""
