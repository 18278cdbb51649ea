#!/usr/bin/env python3
"""The simulated GPU serves programs of CUDA 12 too: a PyTorch for CUDA 12 trains on it."""
import os
import pathlib
import subprocess
import sys
import unittest

import libraries

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["BUILD_ROOT"]).absolute()
TRAINING = "cuda 12.6 grown 67108864 states 3 sum 10"
LIBRARIES = ("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11",
             "libcusolver.so.11")


class Cuda12(unittest.TestCase):
    def train(self, *words):
        env = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY")}
        return subprocess.run(
            [BUILD / "spillway", "sim", *words, "--", libraries.TORCH_PYTHON,
             HERE / "cuda12_training.py"], capture_output=True, text=True, env=env, timeout=800)

    def test_libraries_of_both_versions(self):
        names = {path.name for path in (BUILD / "sim").iterdir()}
        self.assertLessEqual({*LIBRARIES, "libcudart.so.13", "libcublas.so.13"}, names)

    @unittest.skipUnless(libraries.torch_is_there(),
                         f"no {libraries.TORCH}: scripts/setup --driver --torch gets it")
    def test_training(self):
        for words in ([], ["--no-pool"]):
            with self.subTest(words):
                done = self.train(*words)
                self.assertEqual((done.returncode, done.stdout.strip()), (0, TRAINING),
                                 done.stderr)
                self.assertIn("verdict: fits", done.stderr)
                self.assertNotIn("not simulated", done.stderr)
                self.assertNotIn("works only with", done.stderr)


if __name__ == "__main__":
    if os.environ.get("BUILD_SANITIZED", "none") != "none":
        print("skipped: Python is not built with the sanitizer")
        sys.exit(77)
    if not (BUILD / "sim/libcudart.so.12").exists():
        print("skipped: built without headers of CUDA 12: scripts/setup gets them")
        sys.exit(77)
    unittest.main(verbosity=2)
