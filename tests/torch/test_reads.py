#!/usr/bin/env python3
"""What the simulated GPU says is known is what the CPU has: operators run on both, in one process
(beside.py), and every small result that is known is compared."""
import json
import pathlib
import sys
import tempfile
import unittest

import running
import wheel

HERE = running.HERE
# Fewest reads and contents that are known in each.
PROGRAMS = {
    "values.py": (60, 300),
    "offload_module.py": (4, 5),
    "../bench/reads/generate.py": (30, 500),
    "../bench/reads/trainer.py": (20, 400),
}
# What was not computed says that it is known.
LIE = """
import torch
ones = torch.ones(4, 4, device="cuda")
product = ones @ ones
torch.cuda.synchronize()
mode = torch.utils._python_dispatch._get_current_dispatch_mode()
mode.simulator.is_known = lambda tensor: True
product.view(16)
"""


class Reads(unittest.TestCase):
    interpreter = None

    def reports(self, launcher, flags, *command):
        """Of each process, by rank."""
        with tempfile.TemporaryDirectory() as folder:
            run = running.Run([self.interpreter, *launcher, str(HERE / "beside.py"),
                               f"{folder}/%r", "--every", *map(str, command)],
                              ["--spin", "0", *flags], {"OMP_NUM_THREADS": "1"})
            self.assertEqual(run.status, 0, run.stderr)
            return [json.loads(path.read_text())
                    for path in sorted(pathlib.Path(folder).iterdir())]

    def report(self, *command):
        (report,) = self.reports([], [], *command)
        return report

    def test_known_is_true(self):
        for name, (reads, contents) in PROGRAMS.items():
            with self.subTest(name):
                report = self.report(HERE / name)
                self.assertEqual(report["faults"], [])
                self.assertGreaterEqual(report["counts"].get("known and true", 0), reads)
                self.assertGreaterEqual(report["counts"]["compared"], contents)

    def test_collectives(self):
        """Threads of gloo write results after the collective has returned."""
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        reports = self.reports(launcher, ["--devices", "2"], HERE / "two_processes.py")
        self.assertEqual(len(reports), 2)
        for report in reports:
            self.assertEqual(report["faults"], [])
            self.assertGreaterEqual(report["counts"]["compared"], 50)

    def test_a_lie_is_seen(self):
        """A result that is not computed, but called known, is found."""
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "lie.py"
            script.write_text(LIE)
            report = self.report(script)
        self.assertEqual([fault["operator"] for fault in report["faults"]], ["aten.view.default"])


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Reads))
