#!/usr/bin/env python3
"""Memory that is not mapped is not used unseen: a live tensor's granule is unmapped, and whatever
uses it next fails, also when nothing follows that would wait for it."""
import sys
import unittest

import wheel
from running import Run, steps_of

ERRORS = {"copy": "invalid argument", "product": "an illegal memory access was encountered",
          "convolution": "an illegal memory access was encountered",
          "kernel": "an illegal memory access was encountered",
          "addition": "an illegal memory access was encountered"}


class Unmapped(unittest.TestCase):
    interpreter = None

    def check(self, use, *arguments, flags=()):
        run = Run([self.interpreter, *steps_of("unmapped.py", use, *arguments)], flags)
        self.assertIn("used while it was there", run.stdout, run.stderr)
        self.assertNotIn("waited while it was gone", run.stdout)
        self.assertNotEqual(run.status, 0)
        self.assertIn("CUDA error: " + ERRORS[use], run.stderr)

    def test_every_use(self):
        for use in ERRORS:
            with self.subTest(use=use):
                self.check(use)

    def test_no_wait(self):
        """steps.py fails for the script."""
        self.check("product", "--no-wait")

    def test_segments(self):
        self.check("product", flags=["--mode", "segment"])


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Unmapped))
