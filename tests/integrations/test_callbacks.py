#!/usr/bin/env python3
"""The callbacks for transformers and Lightning on the simulated GPU: what they log is in the event
files of TensorBoard, and is what the process held."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import beside

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {f"spillway/{name}" for name in (
    "live_gib", "live_peak_gib", "host_gib", "moved_gib", "step_seconds", "wait_seconds",
    "held_seconds")}
NOT_LOADED = "spillway: spillway is not loaded in this process"
READ = """
import json, pathlib, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

files = [str(path) for path in pathlib.Path(sys.argv[1]).rglob("events.out.tfevents.*")]
events = EventAccumulator(files[0])
events.Reload()
print(json.dumps({tag: {event.step: event.value for event in events.Scalars(tag)}
                  for tag in events.Tags()["scalars"]}))
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], env=beside.environment(),
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done


class Callbacks(unittest.TestCase):
    maxDiff = None

    def train(self, script, memory):
        """What the script printed, the scalars of TensorBoard by name and step, the number of
        steps in the recording, and stderr. Without memory: without spillway, on the CPU."""
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder, "r.rec")
            launcher = [] if memory is None else [
                beside.COMMAND, "sim", "--memory", memory, "--record", recording, "--"]
            done = run(*launcher, beside.PYTHON, HERE / script, folder)
            scalars = json.loads(run(beside.PYTHON, "-c", READ, folder).stdout)
            steps = json.loads(run(beside.COMMAND, "report", recording, "--json").stdout)["steps"] \
                if launcher else 0
        return json.loads(done.stdout.splitlines()[-1]), scalars, steps, done.stderr

    def check(self, scalars, steps, live):
        """Each figure is logged at these steps, with `live` bytes."""
        self.assertEqual(set(scalars), NAMES)
        for name, values in scalars.items():
            self.assertEqual([*values], steps, name)
        self.assertEqual([value * 2**30 for value in scalars["spillway/live_gib"].values()], live)
        for step in steps:
            self.assertGreaterEqual(scalars["spillway/live_peak_gib"][step],
                                    scalars["spillway/live_gib"][step])
            self.assertGreater(scalars["spillway/step_seconds"][step], 0)

    def check_moves(self, scalars, spills):
        for name in "host_gib", "moved_gib", "wait_seconds", "held_seconds":
            for value in scalars[f"spillway/{name}"].values():
                self.assertEqual(value > 0, spills, name)

    def of_trainer(self, scalars):
        return {name.removeprefix("train/"): values for name, values in scalars.items()
                if name.startswith("train/spillway/")}

    def test_transformers(self):
        for memory, spills in ("24GiB", False), ("192MiB", True):
            with self.subTest(memory):
                found, scalars, steps, _ = self.train("hf_logged.py", memory)
                logged = self.of_trainer(scalars)
                self.check(logged, ["2", "4"], found["live"])
                self.check_moves(logged, spills)
                self.assertEqual(steps, 4)  # of two batches each
                for entry in found["history"][:2]:
                    for name in NAMES:
                        self.assertAlmostEqual(entry[name], logged[name][str(entry["step"])],
                                               places=5)
                self.assertEqual(NAMES & set(found["history"][2]), set())  # the end of the run

    def test_lightning(self):
        for memory, spills in ("24GiB", False), ("192MiB", True):
            with self.subTest(memory):
                found, scalars, steps, _ = self.train("lightning_logged.py", memory)
                self.assertEqual([*scalars["loss"]], ["1", "3"])
                logged = {name: values for name, values in scalars.items()
                          if name.startswith("spillway/")}
                self.check(logged, ["1", "3"], [found["live"][3], found["live"][7]])
                self.check_moves(logged, spills)
                self.assertEqual((steps, found["steps"]), (4, 4))

    def test_without_spillway(self):
        for script in "hf_logged.py", "lightning_logged.py":
            with self.subTest(script):
                found, scalars, _, said = self.train(script, None)
                self.assertEqual(found["live"], [])
                self.assertEqual([name for name in scalars if "spillway" in name], [])
                self.assertIn("loss", " ".join(scalars))
                self.assertEqual(said.count(NOT_LOADED), 1, said)

    def test_the_package_imports_neither(self):
        done = run(beside.PYTHON, "-c", "import sys, spillway; print([name for name in sys.modules "
                   "if name.startswith(('torch', 'transformers', 'lightning', 'pytorch'))])")
        self.assertEqual(done.stdout, "[]\n")

    def test_the_document_names_what_runs(self):
        """Its figures, and the lines of its examples."""
        text = (beside.SOURCE / "docs/recipes/integrations.md").read_text()
        rows = re.findall(r"(?m)^\| `(\w+)` \|", text.partition("## Trainers and trackers")[2])
        self.assertEqual({f"spillway/{name}" for name in rows[:len(NAMES)]}, NAMES)
        scripts = "".join((HERE / name).read_text()
                          for name in ("hf_logged.py", "lightning_logged.py"))
        for name in re.findall(r"spillway\.(?:transformers|lightning)\.\w+", text):
            self.assertIn(name, scripts)


if __name__ == "__main__":
    beside.run_tests("tensorboard", "torch", "transformers", "pytorch_lightning")
