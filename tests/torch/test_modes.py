#!/usr/bin/env python3
"""The mode that PyTorch gets, the line about it, and the user's own settings, which are obeyed."""
import json
import re
import sys
import unittest

import wheel
from running import HERE, KNOWN_WARNINGS, Run

NAMES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
EXPANDABLE = "expandable_segments:True"
TENSOR_WITHOUT = ("unavailable: memory snapshots, MemPool isolation, IPC of tensors, CUDA graph "
                  "trees")
SEGMENT_WITHOUT = "unavailable: per-tensor placement"


class Modes(unittest.TestCase):
    interpreter = None

    def run_script(self, script, *arguments, flags=(), settings=None, status=0):
        run = Run([self.interpreter, str(HERE / script), *arguments], flags, settings)
        self.assertEqual(run.status, status, run.stderr)
        return run

    def check(self, run, backend, mode, explanation, expandable=False, children=()):
        answer = json.loads(run.stdout)
        self.assertEqual(answer["backend"], backend)
        self.assertEqual(answer["expandable"], expandable)
        self.assertEqual(answer["children"], list(children))
        self.assertIn(f"spillway: mode {mode} ({explanation})", run.said())
        self.assertEqual(run.stats["0"]["mode"], mode)

    def test_settings_left_open(self):
        run = self.run_script("allocator.py")
        self.check(run, "cudaMallocAsync", "tensor",
                   f"PyTorch's allocator is not configured; {TENSOR_WITHOUT}")
        self.assertEqual(run.unexpected(), [])

    def test_modes_that_are_asked_for(self):
        for mode, backend, without in (
                ("tensor", "cudaMallocAsync", TENSOR_WITHOUT),
                ("segment", "native", SEGMENT_WITHOUT),
                ("observe", "native", "limits and accounting only; the driver allocates")):
            with self.subTest(mode=mode):
                run = self.run_script("allocator.py", flags=["--mode", mode])
                self.check(run, backend, mode, f"SPILLWAY_MODE={mode}; {without}")

    def test_settings_of_the_shell(self):
        for name in NAMES:
            with self.subTest(name=name):
                run = self.run_script("allocator.py", settings={name: EXPANDABLE})
                self.check(run, "native", "segment",
                           f"the user configured PyTorch's allocator; {SEGMENT_WITHOUT}",
                           expandable=True, children=[f"{name}={EXPANDABLE}"])

    def test_settings_of_the_script(self):
        for name in NAMES:
            with self.subTest(name=name):
                run = self.run_script("allocator.py", f"{name}={EXPANDABLE}")
                self.check(run, "native", "segment",
                           f"the user configured PyTorch's allocator; {SEGMENT_WITHOUT}",
                           expandable=True, children=[f"{name}={EXPANDABLE}"])

    def test_settings_of_the_user_beat_the_mode(self):
        run = self.run_script("allocator.py", f"{NAMES[0]}={EXPANDABLE}",
                              flags=["--mode", "tensor"])
        self.check(run, "native", "segment",
                   f"the user configured PyTorch's allocator; {SEGMENT_WITHOUT}",
                   expandable=True, children=[f"{NAMES[0]}={EXPANDABLE}"])

    def test_backend_chosen_by_the_user(self):
        setting = f"{NAMES[0]}=backend:cudaMallocAsync"
        run = self.run_script("allocator.py", setting)
        self.check(run, "cudaMallocAsync", "tensor",
                   f"the user chose cudaMallocAsync for PyTorch; {TENSOR_WITHOUT}",
                   children=[setting])

    def test_summary_of_a_failure_repeats_the_mode(self):
        run = self.run_script("out_of_memory.py", status=1)
        self.assertIn("torch.OutOfMemoryError", run.stderr)
        announced = [line.removeprefix("spillway: ") for line in run.said()
                     if line.startswith("spillway: mode tensor ")]
        self.assertEqual(len(announced), 1)
        self.assertIn(TENSOR_WITHOUT, announced[0])
        after = run.stderr.partition("torch.OutOfMemoryError")[2]
        self.assertRegex(after, r"\(pid \d+\): " + re.escape(announced[0]))

    def test_known_warnings(self):
        """Each is given on that backend, whoever chose it, and on no other."""
        every = set(range(len(KNOWN_WARNINGS)))
        backend = {NAMES[0]: "backend:cudaMallocAsync"}
        for flags, settings, expected in (
                ([], None, every), (["--no-pool"], backend, every), (["--no-pool"], None, set()),
                (["--mode", "segment"], None, set())):
            with self.subTest(flags=flags, settings=settings):
                run = self.run_script("known_warnings.py", flags=flags, settings=settings)
                self.assertEqual(run.warnings(), expected)
                self.assertEqual(run.unexpected(), [])


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Modes))
