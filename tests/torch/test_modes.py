#!/usr/bin/env python3
"""The mode that PyTorch gets, the line about it, and the user's own settings, which are
served, obeyed or overridden."""
import json
import re
import sys
import unittest

import wheel
from running import HERE, KNOWN_WARNINGS, Run

NAMES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
EXPANDABLE = "expandable_segments:True"
SERVED = ("garbage_collection_threshold:0.8,max_split_size_mb:128,"
          "roundup_power2_divisions:[256:1,512:2,>:4]")
# PyTorch's own warning about keys of page-locked memory beside that backend, and the source line.
IGNORES = [r"UserWarning: backend:cudaMallocAsync ignores max_split_size_mb,", r"^  "]
TENSOR_WITHOUT = ("unavailable: memory snapshots, MemPool isolation, IPC of tensors, CUDA graph "
                  "trees")
REPLACED = f"is for, and replaces it; --mode segment obeys it; {TENSOR_WITHOUT}"
SEGMENT_WITHOUT = "unavailable: per-tensor placement"


class Modes(unittest.TestCase):
    interpreter = None

    def run_script(self, script, *arguments, flags=(), settings=None, status=0, log=False):
        run = Run([self.interpreter, str(HERE / script), *arguments], flags, settings, log=log)
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

    def check_replaced(self, run, name, value, warnings=()):
        self.check(run, "cudaMallocAsync", "tensor",
                   f"it does what {name}={value} {REPLACED}", children=[f"{name}={value}"])
        self.assertEqual(len(run.unexpected()), len(warnings))
        for line, pattern in zip(run.unexpected(), warnings):
            self.assertRegex(line, pattern)

    def test_open_settings(self):
        """Whether the shell sets them or the script; the environment stays as it is."""
        for name in NAMES:
            with self.subTest(name=name):
                run = self.run_script("allocator.py", settings={name: EXPANDABLE})
                self.check_replaced(run, name, EXPANDABLE)
                run = self.run_script("allocator.py", f"{name}={SERVED}",
                                      flags=["--mode", "tensor"])
                self.check_replaced(run, name, SERVED)

    def test_settings_of_nothing(self):
        run = self.run_script("allocator.py", settings={NAMES[0]: "", NAMES[1]: ","})
        self.check(run, "cudaMallocAsync", "tensor",
                   f"PyTorch's allocator is not configured; {TENSOR_WITHOUT}",
                   children=[f"{NAMES[0]}=", f"{NAMES[1]}=,"])

    def test_pinned_memory_keeps_its_settings(self):
        """Whichever name PyTorch reads: it registers memory instead of asking the driver for it,
        and warns of other keys than it got."""
        kept = "pinned_use_cuda_host_register:True,pinned_num_register_threads:2"
        for name, value, used in ((NAMES[0], kept, True), (NAMES[1], f"{EXPANDABLE},{kept}", True),
                                  (NAMES[0], EXPANDABLE, False)):
            with self.subTest(name=name, value=value):
                run = self.run_script("allocator.py", settings={name: value}, log=True)
                self.check_replaced(run, name, value, IGNORES if used else [])
                self.assertEqual(any(line.endswith(" cuMemHostRegister_v2 = 0")
                                     for line in run.log), used)

    def test_segment_mode_obeys_open_settings(self):
        for name in NAMES:
            with self.subTest(name=name):
                run = self.run_script("allocator.py", settings={name: EXPANDABLE},
                                      flags=["--mode", "segment"])
                self.check(run, "native", "segment", f"SPILLWAY_MODE=segment; {SEGMENT_WITHOUT}",
                           expandable=True, children=[f"{name}={EXPANDABLE}"])

    def test_choice_of_the_user(self):
        """Obeyed in auto mode, overridden where tensor mode is asked for."""
        for name, value in ((NAMES[0], f"{EXPANDABLE},backend:native"),
                            (NAMES[1], "per_process_memory_fraction:0.5")):
            with self.subTest(name=name, value=value):
                run = self.run_script("allocator.py", settings={name: value})
                self.check(run, "native", "segment",
                           f"the user configured PyTorch's allocator: {name}={value}; --mode "
                           f"tensor overrides it; {SEGMENT_WITHOUT}",
                           expandable=EXPANDABLE in value, children=[f"{name}={value}"])
                run = self.run_script("allocator.py", f"{name}={value}",
                                      flags=["--mode", "tensor"])
                self.check(run, "cudaMallocAsync", "tensor",
                           f"SPILLWAY_MODE=tensor overrides {name}={value}; {TENSOR_WITHOUT}",
                           children=[f"{name}={value}"])

    def test_settings_that_nobody_knows(self):
        """PyTorch's own complaint stays, unless tensor mode is asked for."""
        for value in (f"{EXPANDABLE},no_such_key:[1,2]", "expandable_segments"):
            with self.subTest(value=value):
                settings = {NAMES[0]: value}
                bare = Run([self.interpreter, str(HERE / "allocator.py")], ["--no-pool"], settings)
                self.assertNotEqual(bare.status, 0)
                run = self.run_script("allocator.py", settings=settings, status=bare.status)
                self.assertIn(bare.unexpected()[-1], run.stderr)
                run = self.run_script("allocator.py", settings=settings, flags=["--mode", "tensor"])
                self.check(run, "cudaMallocAsync", "tensor",
                           f"SPILLWAY_MODE=tensor overrides {NAMES[0]}={value}; {TENSOR_WITHOUT}",
                           children=[f"{NAMES[0]}={value}"])

    def test_both_names(self):
        """The older one is in force; a choice in either is obeyed."""
        new, old = NAMES
        run = self.run_script("allocator.py", settings={new: EXPANDABLE,
                                                        old: "max_split_size_mb:64"})
        self.check(run, "cudaMallocAsync", "tensor",
                   f"it does what {old}=max_split_size_mb:64 {REPLACED}",
                   children=[f"{new}={EXPANDABLE}", f"{old}=max_split_size_mb:64"])
        run = self.run_script("allocator.py", settings={new: "backend:native", old: EXPANDABLE})
        self.check(run, "native", "segment",
                   f"the user configured PyTorch's allocator: {new}=backend:native; --mode tensor "
                   f"overrides it; {SEGMENT_WITHOUT}", expandable=True,
                   children=[f"{new}=backend:native", f"{old}={EXPANDABLE}"])
        named = "backend:cudaMallocAsync"
        run = self.run_script("allocator.py", settings={new: named, old: EXPANDABLE})
        self.check(run, "cudaMallocAsync", "tensor",
                   f"it does what {old}={EXPANDABLE} {REPLACED}",
                   children=[f"{new}={named}", f"{old}={EXPANDABLE}"])

    def test_backend_chosen_by_the_user(self):
        left_alone = ", which SPILLWAY_MODE=segment leaves alone"
        for name, mode, more in ((NAMES[0], "auto", ""), (NAMES[1], "tensor", ""),
                                 (NAMES[0], "segment", left_alone)):
            setting = f"{name}=backend:cudaMallocAsync"
            with self.subTest(name=name, mode=mode):
                run = self.run_script("allocator.py", setting, flags=["--mode", mode])
                self.check(run, "cudaMallocAsync", "tensor",
                           f"the user chose cudaMallocAsync for PyTorch{more}; {TENSOR_WITHOUT}",
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
