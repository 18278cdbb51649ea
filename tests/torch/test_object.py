#!/usr/bin/env python3
"""PyTorch's allocator object: in which processes the pool stands in it, and that PyTorch keeps its
own cache where the object is not the one that is known.

For the latter a folder looks like the installed PyTorch, but says another version."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import other_version
import wheel
from running import HERE, ROOT, Run

WAYS = str(HERE / "ways.py")
TENSOR = r"mode tensor \(the pool serves each tensor of PyTorch \d+\.\d+\.\d+\)"
SEGMENT = ("mode segment (PyTorch {}: {}; its cache serves tensors, the pool serves its segments; "
           "unavailable: per-tensor placement)")
LIBRARY = """
import sysconfig
print(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"), sep="/")
"""


class Object(unittest.TestCase):
    interpreter = None

    @classmethod
    def setUpClass(cls):
        done = subprocess.run([cls.interpreter, "-c", LIBRARY], text=True, capture_output=True,
                              check=True)
        cls.library = done.stdout.strip()

    def run_way(self, way, *launcher, flags=(), **settings):
        run = Run([*(launcher or (self.interpreter,)), WAYS, way], flags, settings)
        self.assertEqual((run.status, run.stdout), (0, "1048576\n"), run.stderr)
        self.assertEqual(run.unexpected(), [])
        return [line for line in run.said() if re.search(r"\bmode \w+ \(", line)]

    # ---- where the pool stands in it ----

    def check_tensor(self, way, *launcher, **more):
        lines = self.run_way(way, *launcher, **more)
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], TENSOR)

    def test_preloaded_without_the_launcher(self):
        """The simulated GPU alone is the launcher's."""
        self.check_tensor("here", "sh", "-c", 'LD_PRELOAD="$0:$LD_PRELOAD" exec "$@"',
                          str(ROOT / "libspillway.so"), self.interpreter, flags=["--no-pool"])

    def test_in_a_spawned_process(self):
        self.check_tensor("spawned")

    def test_in_a_forked_process(self):
        self.check_tensor("forked")

    def test_after_another_library(self):
        self.check_tensor("after")

    def test_in_a_program_with_python_inside(self):
        if not os.path.exists(self.library):
            self.skipTest(f"{self.interpreter} has no library")
        self.check_tensor("here", str(ROOT / "tests/torch/embedding"), self.library,
                          self.interpreter)

    # ---- where it does not ----

    def check_segment(self, version, why):
        """The program works; one line says why it is in this mode."""
        with tempfile.TemporaryDirectory() as name:
            other_version.make(self.interpreter, name, version)
            lines = self.run_way("here", PYTHONPATH=name)
        self.assertEqual(lines, ["spillway: " + SEGMENT.format(version, why)])

    def test_a_version_without_a_row(self):
        self.check_segment("9.9.0", "this version is not known")

    def test_a_table_that_is_not_the_versions(self):
        self.check_segment("2.4.0", "its allocator is not as this version's should be")


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Object))
