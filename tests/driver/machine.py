"""Runs programs on a machine with NVIDIA's driver library and no device, bare or under spillway.

The build folder is in the environment as BUILD_ROOT; set by meson.build. Only the programs that are
started here find the driver library, by LD_LIBRARY_PATH.
"""
import functools
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from concurrent import futures

import libraries

sys.path.insert(0, str(libraries.SOURCE / "src/driver"))
import functions  # noqa: E402

ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
PROGRAMS = ROOT / "tests/driver"
OBJECT = ROOT / "libspillway.so"
COMMAND = ROOT / "spillway"
FRAGILE = "driver-555"  # its folder
HERE = pathlib.Path(__file__).resolve().parent
SANITIZED = os.environ.get("BUILD_SANITIZED", "none") != "none"
# Run by root, NVIDIA's library makes /dev/nvidiactl where it is missing; the tests leave no trace.
NO_NODES = ["setpriv", "--inh-caps=-mknod", "--bounding-set=-mknod"]
LISTS = [libraries.SOURCE / "src/driver" / name for name in ("functions.def", "submit.def")]


@functools.cache
def without_nodes():
    """The beginning of a command line that takes the right to make device files from root."""
    if os.geteuid() != 0 or shutil.which(NO_NODES[0]) is None:
        return []
    works = subprocess.run([*NO_NODES, "true"], capture_output=True).returncode == 0
    return NO_NODES if works else []


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

    def run_command(self, command, env, stdin=None, timeout=300):
        """Driver 555.58.02 crashes in some bare starts: the command is run again then, and what a
        witness has written so far is forgotten. A crash under spillway counts at once."""
        command = [*without_nodes(), *(str(word) for word in command)]
        for _ in range(10):
            done = subprocess.run(command, env=env, capture_output=True, text=True,
                                  errors="replace", cwd=self.folder, input=stdin, timeout=timeout,
                                  stdin=None if stdin is not None else subprocess.DEVNULL)
            bare = str(OBJECT) not in env.get("LD_PRELOAD", "")
            fragile = bare and FRAGILE in env["LD_LIBRARY_PATH"]
            if done.returncode != -signal.SIGSEGV or not fragile:
                break
            if "WITNESS_LOG" in env:
                pathlib.Path(env["WITNESS_LOG"]).unlink(missing_ok=True)
        return done

    def run_both(self, command, branch, folders=(), **variables):
        """Runs a command bare and under spillway, at the same time: exit status and both outputs
        must be the same. Returns the bare result."""
        environments = [environment(branch, preload, folders, **variables)
                        for preload in ((), (OBJECT,))]
        with futures.ThreadPoolExecutor() as both:
            bare, pool = both.map(lambda env: self.run_command(command, env), environments)
        self.assertEqual((bare.returncode, bare.stdout, bare.stderr),
                         (pool.returncode, pool.stdout, pool.stderr))
        return bare

    def of(self, branch):
        """A sub-test that is named after a driver."""
        return self.subTest(driver=libraries.full_version(branch))


def main():
    """unittest's runner with Meson's exit codes: 77, with the reason, if nothing was tested."""
    if glob.glob("/dev/nvidia[0-9]*"):
        print("skipped: this machine has a GPU, whose driver fits its own library only")
        sys.exit(77)
    if not libraries.drivers():
        print(libraries.why_not())
        sys.exit(77)
    if libraries.REASON.exists():
        print(f"not all of NVIDIA's libraries are there: {libraries.REASON.read_text().strip()}")
    result = unittest.main(module="__main__", exit=False, argv=sys.argv[:1], verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
