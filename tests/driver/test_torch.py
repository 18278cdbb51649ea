#!/usr/bin/env python3
"""The real PyTorch wheels on NVIDIA's driver library without a device: exit codes and output are
those of a bare run, and spillway is silent."""
import unittest

import libraries
import machine

SCRIPT = machine.HERE / "without_device.py"
# The wheel that scripts/setup --torch installs is for CUDA 13: it finds these drivers too old.
NEWER = libraries.SOURCE / ".venv/bin/python"
LOADED = "import ctypes, torch; print(hasattr(ctypes.CDLL(None), 'spillway_version'))"


@unittest.skipIf(machine.SANITIZED, "Python is not built with the sanitizer")
@unittest.skipUnless(libraries.torch_is_there(),
                     f"no {libraries.TORCH}: scripts/setup --driver --torch gets it")
class Wheel(machine.Case):
    """The wheel for CUDA 12.6."""
    interpreter = libraries.TORCH_PYTHON

    def check(self, words, status, branch, said=(), **variables):
        """Runs the script bare and under spillway; `said` are lines of its output."""
        done = self.run_both([self.interpreter, SCRIPT, *words], branch, **variables)
        self.assertEqual(done.returncode, status, done.stderr)
        for line in said:
            self.assertIn(line, done.stdout.splitlines())

    def test_no_device_on_the_oldest_and_the_newest_driver(self):
        for branch in {libraries.drivers()[0], libraries.drivers()[-1]}:
            with self.of(branch):
                self.check(["ask", "use"], 0, branch,
                           ["available False devices 0", "built for 12.6 initialised False",
                            "RuntimeError No CUDA GPUs are available"])

    def test_workers_and_exit_without_cleaning_up(self):
        self.check(["ask", "fork", "use", "os._exit"], 7, libraries.drivers()[-1],
                   ["[[0, 0], [1, 0], [4, 0], [9, 0]]"])

    def test_spawned_workers_and_an_exception(self):
        self.check(["spawn", "raise"], 1, libraries.drivers()[-1],
                   ["[[0, 0], [1, 0], [4, 0], [9, 0]]"])

    def test_availability_by_nvml(self):
        self.check(["ask"], 0, libraries.drivers()[-1], ["available False devices 0"],
                   PYTORCH_NVML_BASED_CUDA_CHECK="1")

    def test_spillway_is_loaded(self):
        """Otherwise the silence would prove nothing."""
        branch = libraries.drivers()[-1]
        for preload in (), (machine.OBJECT,):
            done = self.run_command([self.interpreter, "-c", LOADED],
                                    machine.environment(branch, preload))
            self.assertEqual((done.stdout.strip(), done.returncode), (str(bool(preload)), 0),
                             done.stderr)


@unittest.skipIf(machine.SANITIZED, "Python is not built with the sanitizer")
@unittest.skipUnless(NEWER.exists(), "no PyTorch in .venv/: scripts/setup --torch gets it")
class NewerWheel(machine.Case):
    def test_driver_too_old(self):
        branch = libraries.drivers()[-1]
        done = self.run_both([NEWER, SCRIPT, "ask", "use", "fork"], branch)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("available False devices 0", done.stdout)
        self.assertIn("The NVIDIA driver on your system is too old", done.stdout)


if __name__ == "__main__":
    machine.main()
