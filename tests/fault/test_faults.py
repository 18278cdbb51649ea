#!/usr/bin/env python3
"""Fails each driver call that spillway makes, one after the other.

The 1st, the 2nd, ... call of every function, until the program makes no further one; without the
argument --long, every third from the 8th on. The program must see success or a clean error, its
memory must be good, the pool's invariants must hold (SPILLWAY_CHECK), and all that the driver gave
must be given back or still be in the books.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../preload"))
import faults
import harness

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
FAULTY = harness.ROOT / "tests/fault/faulty"
OPTIONS = {"SIM_MEMORY": "56MiB", "SIM_SEED": 3, "CHECK": "on", "GROWTH": "0%",
           "SPILL": "off"}
# Events are kept for the next time; a run may need a few more at once than another.
SPARE_EVENTS = 3
# Calls of the program itself, which rightly gives up when they fail.
PROGRAMS_OWN = {"cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize"}
PROBE_BYTES = 8 * harness.MIB  # of the trial at the start, which is in no books


class Log:
    """The content of the simulated driver's log: the number of calls and successes of each
    function, and the chunks that were created and not released."""

    def __init__(self, text):
        self.called, self.succeeded, self.chunks = {}, {}, {}
        for name, code, notes in re.findall(r"^\d+ \d+ \d+ (\w+) = (\d+)(.*)$", text, re.MULTILINE):
            self.called[name] = self.called.get(name, 0) + 1
            self.succeeded[name] = self.succeeded.get(name, 0) + (code == "0")
            if name == "cuMemCreate" and code == "0":
                size, handle = re.search(r"size=(\d+) .*-> (\w+)", notes).groups()
                self.chunks[handle] = int(size)
            elif name == "cuMemRelease" and code == "0":
                del self.chunks[notes.strip()]

    def kept_events(self):
        return self.succeeded.get("cuEventCreate", 0) - self.succeeded.get("cuEventDestroy_v2", 0)


class Faults(faults.Case):
    def run_faulty(self, fault=None):
        result, log = self.run_with(fault, OPTIONS, FAULTY)
        return result, Log(log)

    def check(self, fault, result, log):
        what = faults.told(fault, result)
        self.assertEqual(result.status, 0, what)
        self.assertNotRegex(result.stdout, "wrong|ILLEGAL|UNKNOWN|LAUNCH|INVALID|UNSUPPORTED", what)
        self.assertNotRegex(result.stderr, "invariant", what)
        if result.stats is None:
            self.assertEqual(log.chunks, {}, what)
            return
        self.assertEqual(result.device()["live_bytes"], 0, what)
        unreliable = str(fault).startswith(faults.UNRELIABLE)
        self.assertLessEqual(
            abs(sum(log.chunks.values()) - result.device()["committed_bytes"] -
                result.device()["host_bytes"]),
            PROBE_BYTES if unreliable else 0, f"the books are wrong: {what}")
        if "+" not in str(fault) and not unreliable:
            self.assertEqual(log.chunks, {}, f"chunks kept: {what}")
            self.assertLessEqual(log.kept_events(), self.kept_events + SPARE_EVENTS,
                                 f"events leaked: {what}")

    def sweep(self, name):
        """Fails the n-th call of one function, also all of them, and all but the first few;
        returns the last n."""
        for fault in (f"{name}:1+", f"{name}:5+"):
            self.check(fault, *self.run_faulty(fault))
        number = 1
        while True:
            fault = f"{name}:{number}"
            result, log = self.run_faulty(fault)
            self.check(fault, result, log)
            if log.called.get(name, 0) <= number:
                return number
            number += 1 if LONG or number < 8 else 3

    def test_every_call(self):
        result, log = self.run_faulty()
        own = set(result.device()["driver_calls"]) - PROGRAMS_OWN
        for name in ("cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease",
                     "cuEventRecord"):
            self.assertIn(name, own, "the program does not reach what it is made for")
        self.assertGreater(result.device()["steals"], 0)
        self.kept_events = log.kept_events()
        self.check(None, result, log)
        self.sweep_each(own, self.sweep)


if __name__ == "__main__":
    harness.main()
