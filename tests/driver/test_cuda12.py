#!/usr/bin/env python3
"""The tree builds with headers of CUDA 12, and a PyTorch for CUDA 12 trains on that simulated GPU.

cuda12.py says where it is built."""
import os
import pathlib
import sys
import unittest

import cuda12
import libraries
from cuda12 import BUILD, run

HERE = pathlib.Path(__file__).resolve().parent
TRAINING = "cuda 12.6 grown 67108864 states 3 sum 10"


class Cuda12(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cuda12.build()

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
    if cuda12.why_not():
        print(cuda12.why_not())
        sys.exit(77)
    unittest.main(verbosity=2)
