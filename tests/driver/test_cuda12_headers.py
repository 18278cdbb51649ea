#!/usr/bin/env python3
"""The tree builds with headers of CUDA 12, in the subfolder cuda12/ of the build folder, and
intercepts the same functions as with those of CUDA 13."""
import os
import pathlib
import subprocess
import sys
import unittest

import libraries

ROOT = pathlib.Path(os.environ["BUILD_ROOT"]).absolute()
BUILD = ROOT / "cuda12"
HEADERS = libraries.SOURCE / ".cuda12/include"


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          cwd=ROOT, stdin=subprocess.DEVNULL, timeout=1500)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


class Headers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BUILD / "build.ninja").exists():
            run("meson", "setup", BUILD, libraries.SOURCE, f"-Dcuda-headers={HEADERS}",
                "-Dwerror=true")
        run("ninja", "-C", BUILD)

    def test_libraries_are_of_cuda_12(self):
        names = {path.name for path in (BUILD / "sim").iterdir()}
        self.assertIn("libcudart.so.12", names)
        self.assertNotIn("libcudart.so.13", names)

    def test_all_functions_of_cuda_13_are_intercepted(self):
        """They are rows with any header: a driver may be newer than the headers."""
        names = [run("nm", "-D", "--defined-only", "--format=just-symbols", folder /
                     "libspillway.so").splitlines() for folder in (BUILD, ROOT)]
        self.assertEqual(names[0], names[1])
        self.assertIn("cuMemcpyBatchAsync_v2", names[0])


if __name__ == "__main__":
    if os.environ.get("BUILD_SANITIZED", "none") != "none":
        print("skipped: the tree is built with the sanitizer in other parts")
        sys.exit(77)
    if not (HEADERS / "cuda.h").exists():
        print("skipped: no headers of CUDA 12 in .cuda12/: scripts/setup gets them")
        sys.exit(77)
    unittest.main(verbosity=2)
