#!/usr/bin/env python3
"""Small results are computed on the simulated GPU, so that a program's decisions are those of a
real run, and the verdict tells which were not."""
import sys
import unittest

import running
import wheel

MULTIPLY = "import torch\nones = torch.ones(4, 4, device='cuda')\nprint((ones @ ones).sum().item())"
SPIN = """
import torch
ones = torch.ones(4, 4, device="cuda")
steps = torch.zeros((), device="cuda")
while not (CONDITION).item():
    steps += 1
print(int(steps.item()), "steps")
"""
# The sizes of results whose input is not computed, and of one whose input is.
UNKNOWN = """
import torch
numbers = torch.randn(100, 100, device="cuda")
print(*(len(tensor) for tensor in (
    torch.nonzero(numbers > 0), numbers[numbers > 0], torch.unique(numbers),
    torch.nonzero(torch.randn(7, device="cuda")), torch.nonzero(torch.arange(10, device="cuda")))))
"""


class Values(unittest.TestCase):
    interpreter = None

    def run_program(self, *command, flags=()):
        run = running.Run([self.interpreter, *map(str, command)], ["--memory", "2GiB", "--verbose",
                                                                         *flags])
        self.assertEqual(run.status, 0, run.stderr)
        return run

    def test_values(self):
        for flags in ((), ("--no-pool",)):
            with self.subTest(flags):
                run = self.run_program(running.HERE / "values.py", flags=flags)
                self.assertRegex(run.stdout, r"^\d+ cases, 0 wrong\n$")
                self.assertNotIn("computed here", run.stderr)

    def test_generation_ends(self):
        run = self.run_program(running.HERE / "generation.py")
        lines = run.stdout.splitlines()
        self.assertEqual(len(lines), 6)
        for line in lines:
            # The best beam may be any, and shorter, as its score is not computed.
            self.assertRegex(line, r"\(2, [4-9]\) ok$" if "beams" in line else r"\(2, 9\) ok$")

    def test_what_is_not_computed(self):
        run = self.run_program("-c", MULTIPLY)
        self.assertIn("of 1 GPU result of 4 KiB or less that the program read, 1 may not have been "
                      "computed here", run.stderr)

    def test_sizes_of_what_is_not_computed(self):
        for choice, sizes in (("none", "0 0 1 0 9"), ("half", "5000 5000 5000 4 9"),
                              ("all", "10000 10000 10000 7 9")):
            with self.subTest(choice):
                run = self.run_program("-c", UNKNOWN, flags=("--unknown", choice))
                self.assertEqual(run.stdout, sizes + "\n", run.stderr)
                self.assertRegex(run.stderr, r"spillway:   \d+ kernels that count or select "
                                 rf".* as --unknown {choice} says")
                self.assertRegex(run.stderr, r"  peak: .*; sizes as --unknown says")
        run = self.run_program("-c", UNKNOWN)
        self.assertNotIn("count or select", run.stderr)

    def test_waiting_ends(self):
        """A loop that waits for a result that is not computed fails, and does not spin."""
        run = running.Run([self.interpreter, "-c",
                           SPIN.replace("CONDITION", "(ones @ ones).sum() > 1e38")],
                          ["--memory", "2GiB"])
        self.assertEqual(run.status, 1, run.stderr)
        self.assertIn("operation not supported", run.stderr)
        self.assertIn("the program has read 10000 results in a row that are not computed here",
                      run.stderr)
        run = running.Run([self.interpreter, "-c", SPIN.replace("CONDITION", "steps >= 11000")],
                          ["--memory", "2GiB"])
        self.assertEqual((run.status, run.stdout), (0, "11000 steps\n"), run.stderr)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Values))
