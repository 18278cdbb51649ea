#!/usr/bin/env python3
"""The action for GitHub and the workflow that uses it: they keep to GitHub's schemas, and the steps
of the action do what its inputs say. The steps run as GitHub runs them; of the actions that they
use, only the cache is imitated."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import beside

ACTION = beside.SOURCE / "action.yml"
WORKFLOW = beside.SOURCE / "docs/recipes/memory.yml"
# For the environment, which has a reader of YAML.
READ = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin), default=str))"
PROGRAM = """
import ctypes, sys

runtime = ctypes.CDLL("libcudart.so.13")
for size in sys.argv[1:]:
    address = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(int(size) << 20)) == 0
"""
FITS = {"sim": "--memory 1GiB --memory '2 GiB'", "max-increase": "50MiB",
        "check": "--max-peak 1GiB\n--max-site 'program.py*=500MiB' --max-spill 0"}


def load(path):
    done = subprocess.run([beside.PYTHON, "-c", READ], input=path.read_text(), text=True,
                          capture_output=True, check=True)
    return json.loads(done.stdout)


class Job:
    """One run of the action in a job. `cache` is the file that the cache holds."""

    def __init__(self, folder, inputs, path=beside.COMMAND.parent, branch="main", cache=None):
        self.folder, self.branch, self.cache = folder, branch, cache
        self.action = load(ACTION)
        self.inputs = {name: value.get("default") for name, value in self.action["inputs"].items()}
        self.inputs.update(inputs)
        self.environment = {**beside.environment(), "RUNNER_TEMP": str(folder),
                            "GITHUB_ACTION_PATH": str(folder / "action"),
                            "PATH": f"{path}:/usr/bin:/bin"}
        for name in "OUTPUT", "STEP_SUMMARY", "PATH":
            (folder / name).touch()
            self.environment[f"GITHUB_{name}"] = str(folder / name)
        self.done, self.said, self.failed = [], "", None
        for step in self.action["runs"]["steps"]:
            self.step(step)

    def fill(self, text):
        """Puts in the values of expressions."""
        values = {"runner.temp": str(self.folder), "github.sha": "1234", "github.job": "job",
                  "github.workflow": "memory", **{f"inputs.{name}": value
                                                  for name, value in self.inputs.items()}}
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda match: values[match[1]], text)

    def holds(self, condition):
        terms = {"true": True, "inputs.max-increase != ''": self.inputs["max-increase"] != "",
                 "github.ref_name == github.event.repository.default_branch": self.branch == "main"}
        return all(terms[term] for term in condition.split(" && "))

    def step(self, step):
        if self.failed or not self.holds(step.get("if", "true")):
            return
        self.done.append(step["name"])
        if "uses" in step:
            self.use(step["uses"].partition("@")[0], {name: self.fill(value)
                                                      for name, value in step["with"].items()})
            return
        assert step["shell"] == "bash"
        script = self.folder / "script.sh"
        script.write_text(step["run"])
        env = {name: self.fill(value) for name, value in step.get("env", {}).items()}
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
                              env={**self.environment, **env}, cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.said += done.stdout
        for line in (self.folder / "PATH").read_text().splitlines():
            self.environment["PATH"] = f"{line}:{self.environment['PATH']}"
        self.failed = step["name"] if done.returncode != 0 else None

    def use(self, name, given):
        path = pathlib.Path(given["path"])
        assert given["key"] == "spillway-memory-job-1234", given
        if name == "actions/cache/restore" and self.cache:
            assert given["key"].startswith(given["restore-keys"])
            shutil.copy(self.cache, path)
        elif name == "actions/cache/save":
            assert path.exists()

    def text(self, name):
        return (self.folder / name).read_text()


class Action(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def job(self, name, sizes, **more):
        """A run of the action with a program that allocates blocks of these sizes, in MiB."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "program.py").write_text(PROGRAM)
        inputs = {"command": f"python3 program.py {sizes}", **more.pop("inputs", FITS)}
        return Job(folder, inputs, **more)

    def test_schemas(self):
        for schema, path in ("actions", ACTION), ("workflows", WORKFLOW):
            done = subprocess.run([beside.PYTHON, "-m", "check_jsonschema", "--builtin-schema",
                                   f"vendor.github-{schema}", path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_inputs(self):
        """Those that the action uses and those that the workflow gives are declared."""
        declared = load(ACTION)["inputs"]
        used = set(re.findall(r"inputs\.([a-z-]+)", ACTION.read_text()))
        self.assertEqual(used, set(declared))
        (given,) = [step["with"] for step in load(WORKFLOW)["jobs"]["memory"]["steps"]
                    if step.get("uses", "").startswith("OWNER/spillway@")]
        self.assertLessEqual(set(given), set(declared))
        required = {name for name, value in declared.items() if value.get("required")}
        self.assertLessEqual(required, set(given))

    def test_fits(self):
        first = self.job("first", "100 200")
        self.assertIsNone(first.failed, first.said)
        self.assertEqual(first.text("OUTPUT"), "verdict=fits\n")
        self.assertIn("keep it", first.done)
        self.assertEqual(sorted(path.name for path in (first.folder / "spillway").iterdir()),
                         ["base.rec", "memory.xml", "run.json", "run.rec", "verdict.json"])
        self.assertIn('tests="3" failures="0"', first.text("spillway/memory.xml"))

    def test_comparison(self):
        base = self.job("base", "100 200").folder / "spillway/base.rec"
        good = self.job("good", "100 240", cache=base, branch="topic")
        self.assertIsNone(good.failed, good.said)
        self.assertNotIn("keep it", good.done)
        self.assertIn("40 MiB", good.text("STEP_SUMMARY"))
        bad = self.job("bad", "100 280", cache=base)
        self.assertEqual(bad.failed, "check")
        self.assertIn("the peak rose by 80 MiB from 300 MiB to 380 MiB, at most 50 MiB", bad.said)
        self.assertNotIn("keep it", bad.done)

    def test_limits(self):
        done = self.job("limits", "100 450 20", inputs={"check": "--max-peak 500MiB"})
        self.assertEqual(done.failed, "check", done.said)
        self.assertIn('failures="1"', done.text("spillway/memory.xml"))
        self.assertEqual(self.job("none", "100", inputs={}).failed, None)

    def test_does_not_fit(self):
        spills = self.job("spills", "1500 1500")
        self.assertEqual(spills.failed, "simulate")
        self.assertIn("verdict: does not fit in 2 GiB, but runs by spilling", spills.said)
        self.assertEqual(spills.text("OUTPUT"), "verdict=spills\n")
        allowed = self.job("allowed", "1500 1500", inputs={**FITS, "require": "spill", "check": ""})
        self.assertIsNone(allowed.failed, allowed.said)
        fails = self.job("fails", "100 no-number")
        self.assertEqual((fails.failed, fails.text("OUTPUT")), ("simulate", "verdict=failed\n"))

    def test_builds_where_there_is_no_command(self):
        """The script that builds is replaced by one that writes down its arguments."""
        folder = self.folder / "built"
        scripts = folder / "action/scripts"
        scripts.mkdir(parents=True)
        (scripts / "build").write_text(
            '#!/bin/sh\necho "$@" > "$RUNNER_TEMP/options"\n'
            f'ln -s {beside.COMMAND.parent} "$GITHUB_ACTION_PATH/build"\n')
        (scripts / "build").chmod(0o755)
        (folder / "program.py").write_text(PROGRAM)
        done = Job(folder, {"command": "python3 program.py 100"}, path="/nowhere")
        self.assertIsNone(done.failed, done.said)
        self.assertEqual(done.text("options"), "-Dtests=false -Dbench=false\n")
        self.assertEqual(done.text("OUTPUT"), "verdict=fits\n")
        options = (beside.SOURCE / "meson_options.txt").read_text()
        for name in "tests", "bench":
            self.assertIn(f"option('{name}'", options)


if __name__ == "__main__":
    beside.run_tests("check_jsonschema", "yaml")
