#!/usr/bin/env python3
"""The mode that PyTorch gets and the line about it; and the settings of its allocator, which are
PyTorch's own in every mode."""
import json
import sys
import unittest

import wheel
from running import HERE, Run

NAMES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
EXPANDABLE = "expandable_segments:True"
SETTINGS = (
    {}, {NAMES[0]: EXPANDABLE}, {NAMES[0]: "", NAMES[1]: EXPANDABLE},
    {NAMES[0]: "garbage_collection_threshold:0.8,max_split_size_mb:128,"
               "roundup_power2_divisions:[256:1,512:2,>:4]"},
    {NAMES[0]: EXPANDABLE, NAMES[1]: "backend:native,per_process_memory_fraction:0.5"},
)
TENSOR = r"the pool serves each tensor of PyTorch \d+\.\d+\.\d+"
WITHOUT = "unavailable: per-tensor placement"


class Modes(unittest.TestCase):
    interpreter = None

    def run_script(self, script, *arguments, flags=(), settings=None, status=0, log=False):
        run = Run([self.interpreter, str(HERE / script), *arguments], flags, settings, log=log)
        self.assertEqual(run.status, status, run.stderr)
        return run

    def check(self, run, mode, explanation):
        """The mode, and the one line about it, which is a pattern."""
        self.assertEqual(run.stats["0"]["mode"], mode)
        said = [line for line in run.said() if line.startswith("spillway: mode ")]
        self.assertEqual(len(said), 1, run.stderr)
        self.assertRegex(said[0], rf"^spillway: mode {mode} \({explanation}\)$")

    def test_modes_that_are_asked_for(self):
        for mode, explanation in (
                ("tensor", TENSOR), ("segment", f"SPILLWAY_MODE=segment; {WITHOUT}"),
                ("observe", "SPILLWAY_MODE=observe; limits and accounting only; "
                            "the driver allocates")):
            with self.subTest(mode=mode):
                run = self.run_script("allocator.py", flags=["--mode", mode])
                self.check(run, mode, explanation)
                self.assertEqual(run.unexpected(), [])

    def test_settings(self):
        """What PyTorch makes of them, and what its children see, is the same as without
        spillway."""
        for settings in SETTINGS:
            with self.subTest(settings):
                bare = self.run_script("allocator.py", flags=["--no-pool"], settings=settings)
                self.assertEqual(json.loads(bare.stdout)["expandable"],
                                 EXPANDABLE in settings.get(NAMES[1], settings.get(NAMES[0], "")))
                run = self.run_script("allocator.py", settings=settings)
                self.check(run, "tensor", TENSOR)
                self.assertEqual((run.stdout, run.unexpected()), (bare.stdout, bare.unexpected()))

    def test_settings_of_the_script(self):
        run = self.run_script("allocator.py", f"{NAMES[0]}={EXPANDABLE}")
        self.check(run, "tensor", TENSOR)
        self.assertTrue(json.loads(run.stdout)["expandable"])

    def test_pinned_memory_keeps_its_settings(self):
        """PyTorch registers memory instead of asking the driver for it."""
        for value, used in (("pinned_use_cuda_host_register:True,pinned_num_register_threads:2",
                             True), (EXPANDABLE, False)):
            with self.subTest(value):
                run = self.run_script("allocator.py", settings={NAMES[0]: value}, log=True)
                self.assertEqual(any(line.endswith(" cuMemHostRegister_v2 = 0")
                                     for line in run.log), used)

    def test_settings_that_nobody_knows(self):
        """PyTorch's own complaint stays."""
        settings = {NAMES[0]: f"{EXPANDABLE},no_such_key:[1,2]"}
        bare = Run([self.interpreter, str(HERE / "allocator.py")], ["--no-pool"], settings)
        self.assertNotEqual(bare.status, 0)
        run = self.run_script("allocator.py", settings=settings, status=bare.status)
        self.assertIn(bare.unexpected()[-1], run.stderr)

    def test_backend_chosen_by_the_user(self):
        """It asks for every tensor itself."""
        for name, mode in ((NAMES[0], "auto"), (NAMES[1], "tensor")):
            with self.subTest(name=name, mode=mode):
                run = self.run_script("allocator.py", settings={name: "backend:cudaMallocAsync"},
                                      flags=["--mode", mode])
                self.assertEqual(json.loads(run.stdout)["backend"], "cudaMallocAsync")
                self.check(run, "tensor", "the user chose cudaMallocAsync for PyTorch")
                self.assertGreater(run.stats["0"]["devices"][0]["allocs"], 0)

    def test_without_pytorchs_cache(self):
        """PyTorch asks for each tensor by cudaMalloc then, without naming a stream."""
        run = self.run_script("allocator.py", settings={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
        self.check(run, "segment",
                   r"PyTorch [\d.]+: PYTORCH_NO_CUDA_MEMORY_CACHING is set; its cache serves "
                   rf"tensors, the pool serves its segments; {WITHOUT}")

    def test_summary_of_a_failure_repeats_the_mode(self):
        run = self.run_script("out_of_memory.py", status=1)
        self.assertIn("torch.OutOfMemoryError", run.stderr)
        self.check(run, "tensor", TENSOR)
        after = run.stderr.partition("torch.OutOfMemoryError")[2]
        self.assertRegex(after, rf"\(pid \d+\): mode tensor \({TENSOR}\)")


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Modes))
