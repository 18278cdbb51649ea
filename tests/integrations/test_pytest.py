#!/usr/bin/env python3
"""The plugin of pytest, found by its entry point: how tests with the mark end, alone and beside
others, with pytest-xdist, and the example of docs/recipes/integrations.md."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import beside

sys.path.insert(0, str(beside.SOURCE / "packing"))
import make_wheel  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MARKED = HERE / "marked"
SPILLS = r"""verdict: does not fit in 1 GiB, but runs by spilling \d+ MiB
  peak: 1\.17 GiB live; most: 600 MiB by conftest\.py:15 allocate
  next: """
UNUSED = "verdict: none: no process is known to have used a simulated device"
# How each test ends, and what its message begins with.
ENDS = {
    "test_fits": ("passed", ""), "test_options[a::b]": ("passed", ""),
    "test_options[c[d]]": ("passed", ""), "test_card": ("passed", ""),
    "TestClass.test_inside": ("passed", ""), "Unit.test_inside": ("passed", ""),
    "test_plain": ("passed", ""), "test_spills": ("failure", SPILLS),
    "test_fails": ("failure", "AssertionError: .*|.*'this' == 'that'"),
    "test_setup_fails": ("error", 'failed on setup with ".*nothing'),
    "test_skips": ("skipped", "not today"), "test_known": ("skipped", ""),
    "test_uses_nothing": ("failure", UNUSED),
    "test_dies": ("failure", "Failed: the process of the test ended with 3:"),
    "test_wrong_option": ("failure", r"Failed: .*--devics is not an option \(did you mean "
                          r"--devices\?\)"),
    "test_no_size": ("failure", r'Failed: test_marked.py::test_no_size: expected gpu_memory\("24'),
}


def ends(file):
    """Of each test in a file of JUnit's form: how it ended, the message, and its properties."""
    found = {}
    for case in xml.etree.ElementTree.parse(file).iter("testcase"):
        group = case.get("classname").rpartition(".")[2]
        name = case.get("name") if group == "test_marked" else f"{group}.{case.get('name')}"
        bad = [child for child in case if child.tag in ("failure", "error", "skipped")]
        found[name] = (bad[0].tag if bad else "passed", bad[0].get("message") if bad else "",
                       {one.get("name"): one.get("value") for one in case.iter("property")})
    return found


class Plugin(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        info = self.folder / "spillway-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spillway\nVersion: 0\n")
        (info / "entry_points.txt").write_text(make_wheel.ENTRY_POINTS)

    def pytest(self, *arguments, cwd=MARKED, path=f"{beside.COMMAND.parent}:/usr/bin:/bin",
               **variables):
        env = {**beside.environment(**variables), "PATH": path}
        env["PYTHONPATH"] = f"{self.folder}:{env['PYTHONPATH']}"
        return subprocess.run([beside.PYTHON, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
                              env=env, cwd=cwd, capture_output=True, text=True, timeout=600)

    def check(self, *arguments):
        file = self.folder / "junit.xml"
        done = self.pytest(f"--junitxml={file}", *arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        found = ends(file)
        self.assertEqual({name: how for name, (how, *_) in found.items()},
                         {name: how for name, (how, _) in ENDS.items()})
        for name, (_, message, _) in found.items():
            self.assertRegex(message, f"(?s)^(?:{ENDS[name][1]})", name)
        self.assertEqual(found["test_fits"][2], {"taken": "100"})
        self.assertIn("6 failed, 7 passed", done.stdout)
        self.assertNotIn("warning", done.stdout)
        return done.stdout

    def test_ends(self):
        shown = self.check()
        self.assertRegex(shown, rf"(?m)^_+ test_spills _+\n{SPILLS}")

    def test_several_workers(self):
        self.check("-n", "2", "--dist", "loadgroup")

    def test_choice(self):
        """Options of the command line choose tests; those of the configuration do not hinder."""
        done = self.pytest("-k", "unwanted or (options and a::b)", "-v")
        self.assertEqual(done.returncode, 1)
        self.assertIn("test_marked.py::test_options[a::b] PASSED", done.stdout)
        self.assertIn("test_marked.py::test_unwanted FAILED", done.stdout)
        self.assertIn(UNUSED, done.stdout)
        self.assertIn("1 failed, 1 passed", done.stdout)

    def test_several_processes_by_configuration(self):
        done = self.pytest("test_marked.py::TestClass", PYTEST_ADDOPTS="-n 2")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("1 passed", done.stdout)

    def test_without_the_command(self):
        done = self.pytest("-k", "fits", path="/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the command `spillway` is not found", done.stdout)

    def test_example(self):
        text = (beside.SOURCE / "docs/recipes/integrations.md").read_text()
        (example,) = re.findall(r"```python\n(import pytest\n.*?)```", text, re.DOTALL)
        (self.folder / "test_example.py").write_text(example)
        done = self.pytest("-rP", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("verdict: fits in 24 GiB", done.stdout)


if __name__ == "__main__":
    beside.run_tests("pytest", "xdist", "torch")
