#!/usr/bin/env python3
"""The tree builds with headers of CUDA 12, and a PyTorch for CUDA 12 trains on that simulated GPU.

The build folder is in the environment as BUILD_ROOT; set by meson.build. The second build stays in
its subfolder cuda12/."""
import os
import pathlib
import subprocess
import sys
import unittest

import libraries

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["BUILD_ROOT"]) / "cuda12"
HEADERS = libraries.SOURCE / ".cuda12/include"
TRAINING = "cuda 12.6 grown 67108864 states 3 sum 10"


def run(*command, **variables):
    env = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY")}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**env, **variables}, cwd=BUILD.parent, stdin=subprocess.DEVNULL,
                          timeout=1500)
    return done


class Cuda12(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BUILD / "build.ninja").exists():
            done = run("meson", "setup", BUILD, libraries.SOURCE, f"-Dcuda-headers={HEADERS}",
                       "-Dwerror=true")
            assert done.returncode == 0, done.stdout + done.stderr
        done = run("ninja", "-C", BUILD)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_libraries_have_the_names_of_cuda_12(self):
        names = {path.name for path in (BUILD / "sim").iterdir()}
        self.assertLessEqual({"libcuda.so.1", "libcudart.so.12", "libcublas.so.12",
                              "libcublasLt.so.12", "libcudnn.so.9", "libcufft.so.11",
                              "libcusolver.so.11", "libcusparse.so.12"}, names)
        self.assertNotIn("libcudart.so.13", names)

    def test_all_functions_of_cuda_13_are_intercepted(self):
        """They are rows with any header: a driver may be newer than the headers."""
        names = [run("nm", "-D", "--defined-only", "--format=just-symbols", folder /
                     "libspillway.so").stdout.splitlines() for folder in (BUILD, BUILD.parent)]
        self.assertEqual(names[0], names[1])
        self.assertIn("cuMemcpyBatchAsync_v2", names[0])

    @unittest.skipUnless(libraries.torch_is_there(),
                         f"no {libraries.TORCH}: scripts/setup --driver --torch gets it")
    def test_training(self):
        for words in ([], ["--no-pool"]):
            with self.subTest(words):
                done = run(BUILD / "spillway", "sim", *words, "--", libraries.TORCH_PYTHON,
                           HERE / "cuda12_training.py")
                self.assertEqual((done.returncode, done.stdout.strip()), (0, TRAINING),
                                 done.stderr)
                self.assertIn("verdict: fits", done.stderr)
                self.assertNotIn("not simulated", done.stderr)


if __name__ == "__main__":
    if os.environ.get("BUILD_SANITIZED", "none") != "none":
        print("skipped: Python is not built with the sanitizer")
        sys.exit(77)
    if not (HEADERS / "cuda.h").exists():
        print("skipped: no headers of CUDA 12 in .cuda12/: scripts/setup --cuda12 gets them")
        sys.exit(77)
    unittest.main(verbosity=2)
