#!/usr/bin/env python3
"""spillway check and diff on trainings: a regression and a leak are named with their lines."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import running
import wheel

SCRIPT = running.HERE / "leaking.py"
MIB = 1 << 20


def line_of(mark):
    """The number of the script's line that ends with a comment."""
    (number,) = [number for number, line in enumerate(SCRIPT.read_text().splitlines(), 1)
                 if line.endswith("# " + mark)]
    return number


class Check(unittest.TestCase):
    interpreter = None

    def record(self, folder, name, *arguments):
        path = folder / name
        run = running.Run([self.interpreter, str(SCRIPT), *arguments], ["--record", str(path)])
        self.assertEqual(run.status, 0, run.stderr)
        return path

    def spillway(self, *arguments):
        done = subprocess.run([str(running.ROOT / "spillway"), *map(str, arguments)], text=True,
                              capture_output=True, check=False, timeout=300)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_lines(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            plain = self.record(folder, "plain")
            self.assertEqual(self.spillway("check", plain, "--max-growth", "0/step"), (0, ""))
            self.check_regression(plain, self.record(folder, "extra", "--extra", "64"))
            self.check_leak(self.record(folder, "leak", "--leak"))

    def check_regression(self, plain, extra):
        planted = f"leaking.py:{line_of('planted')} measure"
        code, out = self.spillway("check", extra, "--base", plain, "--max-increase", "32MiB")
        self.assertEqual(code, 1)
        self.assertRegex(out, rf"the peak rose by 6\d.*most by {planted}(, \S+)*: \+64 MiB\n$")
        (device,) = json.loads(self.spillway("diff", plain, extra, "--json")[1])["devices"]
        rise = device["after"]["peak_bytes"] - device["before"]["peak_bytes"]
        self.assertEqual(device["sites"][0]["change_bytes"], 64 * MIB)
        self.assertRegex(device["sites"][0]["after"]["label"], rf"^{planted}(, \S+)*$")
        self.assertEqual(sum(row["change_bytes"] for row in device["sites"]), rise)

    def check_leak(self, path):
        """The steps are found without marks, and differ in size."""
        code, out = self.spillway("check", path, "--max-growth", "64KiB/step")
        self.assertEqual(code, 1)
        self.assertIn("(19 optimizer steps)", out)
        self.assertRegex(out, rf"most by leaking.py:{line_of('leaked')} measure(, \S+)*: "
                              r"\d+ KiB\n$")


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Check))
