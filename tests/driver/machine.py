"""Runs programs on a machine with NVIDIA's driver library and no device, bare or under spillway.

The build folder is in the environment as BUILD_ROOT; set by meson.build. Only the programs that are
started here find the driver library, by LD_LIBRARY_PATH.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import libraries

sys.path.insert(0, str(libraries.SOURCE / "src/driver"))
import functions  # noqa: E402

ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
PROGRAMS = ROOT / "tests/driver"
OBJECT = ROOT / "libspillway.so"
COMMAND = ROOT / "spillway"
HERE = pathlib.Path(__file__).resolve().parent
SANITIZED = os.environ.get("BUILD_SANITIZED", "none") != "none"
LISTS = [libraries.SOURCE / "src/driver" / name for name in ("functions.def", "submit.def")]


def rows():
    """The rows of the driver's functions that spillway intercepts."""
    return [row._replace(since=int(row.since), flags=int(row.flags))
            for row in functions.rows(*LISTS) if isinstance(row, functions.Function)]


def exports(path):
    """Symbol -> address in the file, of the functions that a library exports."""
    text = subprocess.run(["readelf", "--dyn-syms", "--wide", str(path)], capture_output=True,
                          text=True, check=True).stdout
    lines = [line.split() for line in text.splitlines()]
    return {line[7].partition("@")[0]: int(line[1], 16) for line in lines
            if len(line) == 8 and line[0].rstrip(":").isdigit() and line[6] != "UND"}


def environment(branch, preload=(), folders=(), **variables):
    """A clean environment in which this branch of the driver is found."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("SPILLWAY", "LD_", "PYTORCH_", "CUDA_"))}
    found = [libraries.driver_folder(branch), *folders]
    env["LD_LIBRARY_PATH"] = ":".join(str(folder) for folder in found)
    if preload:
        env["LD_PRELOAD"] = " ".join(str(path) for path in preload)
    env.update(variables)
    return env


class Case(unittest.TestCase):
    """A test with a folder of its own."""
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_command(self, command, env, stdin=None, timeout=120):
        return subprocess.run([str(word) for word in command], env=env, capture_output=True,
                              text=True, errors="replace", cwd=self.folder, input=stdin,
                              stdin=None if stdin is not None else subprocess.DEVNULL,
                              timeout=timeout)

    def run_both(self, command, branch, folders=(), ignoring=None, **variables):
        """Runs a command bare and under spillway: exit status and both outputs must be the same,
        but for what the pattern `ignoring` matches. Returns the bare result."""
        results = [self.run_command(command, environment(branch, preload, folders, **variables))
                   for preload in ((), (OBJECT,))]
        bare, pool = [(done.returncode, *(re.sub(ignoring or "$^", "", text)
                                          for text in (done.stdout, done.stderr)))
                      for done in results]
        self.assertEqual(bare, pool)
        return results[0]

    def of(self, branch):
        """A sub-test that is named after a driver."""
        return self.subTest(driver=libraries.full_version(branch))


def main():
    """unittest's runner with Meson's exit codes: 77, with the reason, if nothing was tested."""
    if not libraries.drivers():
        print(libraries.why_not())
        sys.exit(77)
    if libraries.REASON.exists():
        print(f"not all of NVIDIA's libraries are there: {libraries.REASON.read_text().strip()}")
    result = unittest.main(module="__main__", exit=False, argv=sys.argv[:1], verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
