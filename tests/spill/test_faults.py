#!/usr/bin/env python3
"""Fails the driver calls of migrations, one after the other: content stays, nothing leaks.

Of a function that is called often only some calls are failed; with the argument --long, all. In the
other modes of moving, and in a program that repeats itself, at most so many as a run of an hour has
time for.
"""
import re
import unittest

from spill import LONG, PATIENT
import faults
import harness

MOVES = harness.ROOT / "tests/spill/moves"
PERIODIC = harness.ROOT / "tests/spill/periodic"
PAUSED = harness.ROOT / "tests/spill/paused"
REPLAYS = harness.ROOT / "tests/spill/replays"
OPTIONS = {"SIM_MEMORY": "64MiB", "SIM_SEED": 2, "CHECK": "on", **PATIENT}
NAMES = ("cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemRelease",
         "cuMemcpyAsync", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuCtxRecordEvent",
         "cuEventRecord", "cuEventQuery", "cuEventCreate", "cuStreamWaitEvent",
         "cuMemAddressReserve")


def commits(log):
    """The numbers of the cuMemSetAccess calls that end migrations: the first after a copy."""
    return [before.count(" cuMemSetAccess = ") + 1
            for before in (log[:found.start()] for found in re.finditer(" cuMemcpyAsync = ", log))]


class Faults(faults.Case):
    MODE = {"VERIFY": "on"}
    COMMAND = MOVES, "faults"
    MOST_FAULTS = 1000000 if LONG else 6

    def run_moves(self, fault=None):
        return self.run_with(fault, OPTIONS | self.MODE, *self.COMMAND)

    def assert_ended(self, result, what):
        self.assertEqual(result.status, 0, what)

    def check(self, fault, result, log):
        what = faults.told(fault, result)
        self.assert_ended(result, what)
        self.assertNotRegex(result.stdout + result.stderr, "BUG|broken|words wrong", what)
        if result.status != 0:
            return
        device = result.device()
        self.assertEqual(device["live_bytes"], 0, what)
        if not fault.startswith(faults.UNRELIABLE):
            created = len(re.findall(r" cuMemCreate = 0", log))
            released = len(re.findall(r" cuMemRelease = 0", log))
            self.assertEqual(created, released, f"chunks kept: {what}")

    def assert_moved(self, device):
        self.assertGreater(device["moves"], 0)
        self.assertGreater(device["promoted_bytes"], 0)

    def sweep(self, name, calls):
        step = max(1, -(-calls // self.MOST_FAULTS))
        for number in range(1, calls + 1, step):
            fault = f"{name}:{number}"
            self.check(fault, *self.run_moves(fault))
        return len(range(1, calls + 1, step))

    def test_refused_for_a_while(self):
        """Mappings that fail several times are retried until they succeed: nothing is lost."""
        for name in ("cuMemSetAccess", "cuMemMap"):
            log = self.run_moves()[1]
            calls = log.count(f" {name} = ")
            begin = log[:log.index(" cuMemcpyAsync = ")].count(f" {name} = ")
            for number in range(begin + 1, calls, max(1, (calls - begin) // self.MOST_FAULTS)):
                fault = ",".join(f"{name}:{number + i}" for i in range(6))
                result, _ = self.run_moves(fault)
                what = faults.told(fault, result)
                self.assert_ended(result, what)
                self.assertNotRegex(result.stderr, "BUG|broken|does not give back", what)

    def test_refused_for_good(self):
        """Access that is never granted again: a move that has not begun is not made; of one that
        has, the blocks cannot be reached, which is said once, and no content is wrong."""
        log = self.run_moves()[1]
        calls = log.count(" cuMemSetAccess = ")
        numbers = range(1, calls + 1) if LONG else {*range(1, calls + 1, 16), *commits(log)}
        lost = 0
        for number in sorted(numbers):
            fault = f"cuMemSetAccess:{number}+"
            result, _ = self.run_moves(fault)
            what = faults.told(fault, result)
            said = result.stderr.count("does not give back access")
            self.assertNotRegex(result.stdout + result.stderr, "BUG|broken|words wrong", what)
            self.assertLessEqual(said, 1, what)
            if result.status != 0 and said == 0:
                self.assertRegex(result.stdout, "cuMemAlloc", what)
            lost += said
        self.assertGreater(lost, 0)

    def test_moves(self):
        result, log = self.run_moves()
        self.assertEqual(result.status, 0, result.stdout + result.stderr)
        self.assert_moved(result.device())
        self.sweep_each(NAMES, lambda name: self.sweep(name, log.count(f" {name} = ")))


@unittest.skipUnless(LONG, "only with --long")
class Closed(Faults):
    MODE = {"OVERLAP": "off", "VERIFY": "on"}
    MOST_FAULTS = 300


@unittest.skipUnless(LONG, "only with --long")
class Guarded(Faults):
    """Without verification, which would keep migrations from running beside a busy device."""
    MODE = {"OVERLAP": "guarded"}
    MOST_FAULTS = 300


@unittest.skipUnless(LONG, "only with --long")
class Paused(Faults):
    """Pauses that the program asks for: what is refused stays on the device."""
    COMMAND = PAUSED, "api", "2"
    MOST_FAULTS = 300

    def assert_ended(self, result, what):
        """The program ends where an allocation finds no memory."""
        if result.status != 0:
            self.assertRegex(result.stdout, "cuMemAlloc", what)


@unittest.skipUnless(LONG, "only with --long")
class Replayed(Faults):
    """Launches of graphs bring blocks back; what cannot come back is used on the host."""
    COMMAND = REPLAYS, "1"
    MOST_FAULTS = 100

    def assert_ended(self, result, what):
        """The program ends where a call of its own fails."""
        if result.status != 0:
            self.assertRegex(result.stdout, r"\.[ch]:\d+: .* = \d+\n", what)


class Asked(Faults):
    """Pauses from outside, with memory of graphs, that end when the program needs the device."""
    COMMAND = PAUSED, "tries", "2", harness.COMMAND, "host"
    MODE = {"CONTROL": "on", "SIM_MEMORY": "1GiB"}
    MOST_FAULTS = 100 if LONG else 2
    test_refused_for_a_while = test_refused_for_good = None

    def assert_ended(self, result, what):
        """The program ends where a call of its own fails."""
        if result.status != 0:
            self.assertRegex(result.stdout, r"\.[ch]:\d+: .* = \d+\n", what)
            self.assertNotIn("= 700\n", result.stdout, what)  # that memory was not accessible


class Swapped(Asked):
    """Likewise, to a file: what cannot be brought back at once is brought back later."""
    COMMAND = PAUSED, "tries", "2", harness.COMMAND, "/tmp"

    def assert_moved(self, device):
        self.assertGreater(device["driver_calls"]["cuMemcpyHtoDAsync_v2"], 0)


@unittest.skipUnless(LONG, "only with --long")
class Foreseen(Faults):
    """Most moves are ahead of use, and prepared while the one before is under way. The program
    takes two seconds, and calls more than a thousand times what asks for events."""
    COMMAND = PERIODIC, "4", "named"
    MOST_FAULTS = 60

    def assert_ended(self, result, what):
        """The program ends where an allocation finds no memory."""
        if result.status != 0:
            self.assertIn("out of memory on device 0", result.stderr, what)
            self.assertRegex(result.stdout, "cuMemAlloc", what)


if __name__ == "__main__":
    harness.main()
