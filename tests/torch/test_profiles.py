#!/usr/bin/env python3
"""PyTorch finds its kernels on every simulated GPU for which it has code, and says so on others.

Without the argument --long, those for which the rules of compatibility matter most.
"""
import subprocess
import sys
import unittest

import running
import wheel

LONG = "--long" in sys.argv
CHOSEN = "gtx1080ti-11g", "t4-16g", "rtx4090-24g", "b300-288g", "gb10-128g"
SCRIPT = running.HERE / "operators.py"


def profiles():
    """(id, compute capability) of all that the command lists."""
    listed = subprocess.run([str(running.ROOT / "spillway"), "sim", "--profile", "list"],
                            capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.split("\n\n")[0].splitlines()[1:]]
    return [(row[0], tuple(map(int, row[3].split(".")))) for row in rows]


class Profiles(unittest.TestCase):
    interpreter = None

    def test_operators(self):
        least = subprocess.run([self.interpreter, "-c", "import torch\n"
                                "print(min(torch._C._cuda_getArchFlags().replace('sm_', '')"
                                ".split(), key=lambda name: int(name.rstrip('af'))))"],
                               capture_output=True, text=True, check=True).stdout.strip()
        for name, capability in profiles():
            if not LONG and name not in CHOSEN:
                continue
            with self.subTest(name):
                run = running.Run([self.interpreter, str(SCRIPT)],
                                  ["--profile", name, "--memory", "2GiB"])
                if 10 * capability[0] + capability[1] < int(least):
                    self.assertNotEqual(run.status, 0)
                    self.assertIn("no kernel image is available", run.stderr)
                else:
                    self.assertEqual(run.status, 0, run.stderr)
                    self.assertEqual(run.stdout, "capability %d %d\n" % capability)


if __name__ == "__main__":
    LONG and sys.argv.remove("--long")
    sys.exit(wheel.run_tests(Profiles))
