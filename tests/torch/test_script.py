#!/usr/bin/env python3
"""Run a training script on the simulated GPU in all modes, and compare what PyTorch reports.

    test_script.py [--exempt all|peaks] SCRIPT [ARGUMENTS...]

Some figures differ for good reason: memory that a graph owns is counted by PyTorch's own allocator
only (all), and on the other backend PyTorch tries how much it may take before cuDNN compares its
algorithms (peaks). Exits with 77 when there is no PyTorch that the simulated GPU can serve.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import wheel

ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
HERE = pathlib.Path(__file__).resolve().parent
MEMORY = "24GiB"

# What PyTorch itself says on the backend cudaMallocAsync; see README.md.
KNOWN_WARNINGS = [
    r"Attempting uncaptured free of a captured allocation",
    r"This is technically allowed, but may indicate you are losing",
    r"Called record_stream on tensor whose original creation stream matches",
    r"resetAccumulatedStats has no effect",
]
# Each block may be rounded up by so much, whatever its size.
ROUNDING = 512


class Run:
    """One run of the script, and what it left behind."""

    def __init__(self, interpreter, command, flags, settings):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("SPILLWAY", "PYTORCH_"))}
        env.update(settings)
        with tempfile.TemporaryDirectory() as folder:
            steps = os.path.join(folder, "steps")
            stats = os.path.join(folder, "stats")
            if "--no-pool" not in flags:
                flags = [*flags, "--stats", stats]
            done = subprocess.run(
                [str(ROOT / "spillway"), "sim", "--memory", MEMORY, *flags, "--", interpreter,
                 str(HERE / "steps.py"), steps, *command],
                env=env, text=True, capture_output=True, stdin=subprocess.DEVNULL)
            self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
            self.steps = self.read(steps)
            self.stats = json.loads(self.text(stats) or "null")

    @staticmethod
    def text(path):
        return pathlib.Path(path).read_text() if os.path.exists(path) else ""

    def read(self, path):
        return [json.loads(line) for line in self.text(path).splitlines()]

    def unexpected(self):
        """Lines of stderr that are neither spillway's own nor known warnings."""
        lines = []
        known = False
        for line in self.stderr.splitlines():
            # Python shows the line that a warning is about, indented, below it.
            known = any(re.search(pattern, line) for pattern in KNOWN_WARNINGS) or (
                known and line.startswith("  "))
            if not known and not line.startswith("spillway:"):
                lines.append(line)
        return lines


class Script(unittest.TestCase):
    interpreter = None
    command = []
    exempt = None

    def run_script(self, *flags, **settings):
        run = Run(self.interpreter, self.command, list(flags), settings)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.unexpected(), [])
        self.assertGreater(len(run.steps), 1)
        return run

    def assert_between(self, plain, pooled, figure):
        for step, (bare, ours) in enumerate(zip(plain.steps, pooled.steps), start=1):
            suffix = "_peak" if figure.endswith("_peak") else ""
            slack = ROUNDING * bare["blocks" + suffix]
            with self.subTest(figure=figure, step=step):
                self.assertGreaterEqual(ours[figure], bare["requested" + suffix])
                self.assertLessEqual(ours[figure], bare[figure] + slack)

    def test_figures_of_tensor_mode(self):
        plain = self.run_script("--no-pool")
        pooled = self.run_script()
        self.assertEqual(pooled.stats["mode"], "tensor")
        self.assertEqual(len(plain.steps), len(pooled.steps))
        if self.exempt != "all":
            self.assert_between(plain, pooled, "allocated")
        if self.exempt is None:
            self.assert_between(plain, pooled, "allocated_peak")
        device = pooled.stats["devices"][0]
        self.assertEqual(pooled.steps[-1]["reserved"],
                         device["committed_bytes"] + device["host_bytes"])

    def test_expandable_segments(self):
        settings = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
        # PyTorch makes chunks while it captures in the global mode, and gets them on GPUs.
        flags = ["--capture-vmm", "safe"]
        plain = self.run_script("--no-pool", *flags, **settings)
        pooled = self.run_script(*flags, **settings)
        self.assertEqual(pooled.stats["mode"], "segment")
        self.assertEqual([step["allocated"] for step in plain.steps],
                         [step["allocated"] for step in pooled.steps])

    def test_segment_and_observe_mode(self):
        for mode in ("segment", "observe"):
            with self.subTest(mode=mode):
                self.assertEqual(self.run_script("--mode", mode).stats["mode"], mode)


def main(argv):
    Script.interpreter, reason = wheel.find()
    if reason:
        print(reason)
        return 77
    command = argv[1:]
    if command[0] == "--exempt":
        Script.exempt = command[1]
        del command[:2]
    Script.command = [str(HERE / command[0]), *command[1:]]
    return not unittest.main(argv=argv[:1], exit=False, verbosity=2).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
