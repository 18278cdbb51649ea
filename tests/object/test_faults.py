#!/usr/bin/env python3
"""Fails each driver call of a short program in turn: it ends as it would bare, or with the same
answer; it never crashes, and no tensor is lost. Without --long, the first calls of each
function."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../preload"))
import fakes
import faults
import harness

SHORT = fakes.program("short")
LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
MOST = 1000 if LONG else 3
OPTIONS = {"SIM_MEMORY": "64MiB", "SIM_SEED": 3, "CHECK": "on"}
# Calls that the program and its stand-in for PyTorch make themselves.
FORBIDDEN = r"wrong [^0]|lost [^0]|invalid device pointer|invariant"


class Faults(fakes.Case, faults.Case):
    def run_short(self, fault):
        result, log = self.run_with(fault, OPTIONS, SHORT)
        what = faults.told(fault, result)
        self.assertIn(result.status, (0, 1), what)
        self.assertNotRegex(result.stdout + result.stderr, FORBIDDEN, what)
        if result.status == 0 and result.stats is not None and not str(fault).startswith(
                faults.UNRELIABLE):
            self.assertEqual(result.device()["live_bytes"], 0, what)
        return result, log

    def sweep(self, name):
        for number in range(1, MOST):
            _, log = self.run_short(f"{name}:{number}")
            if len(re.findall(rf" {name} = ", log)) < number:
                return number
        return MOST

    def test_each_call(self):
        result, log = self.run_short(None)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(result.stdout.count("wrong 0"), 1)
        self.sweep_each(sorted(set(re.findall(r"^\d+ \d+ \d+ (\w+) = ", log, re.MULTILINE))),
                        self.sweep)


if __name__ == "__main__":
    harness.main()
