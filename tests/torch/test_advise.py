#!/usr/bin/env python3
"""`spillway advise` of training scripts: what it predicts, and what its replays show."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import corpus
import running
import wheel

SCRIPTS = {"lstm": "75%"}  # with budgets


TRAINING = """
import torch
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(6))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(8):
    model(torch.ones(512, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


class Advise(unittest.TestCase):
    interpreter = None

    def advise(self, folder, name, budget):
        """What the command printed, and its answer."""
        script, *arguments = corpus.SCRIPTS[name].command
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("SPILLWAY", "PYTORCH_", "LD_"))}
        done = subprocess.run(
            [running.ROOT / "spillway", "advise", "--budget", budget, "--json", folder / "answer",
             "--output", folder / "advice.json", "--", self.interpreter, running.HERE / script,
             *arguments], capture_output=True, text=True, env=env, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, json.loads((folder / "answer").read_text())

    def check(self, folder, said, answer):
        without, replayed = (answer[key]["step_ratio"] for key in ("without_rules", "replayed"))
        self.assertEqual(answer["answer"], "placed", said)
        self.assertGreater(without, 1)
        self.assertEqual(answer["written"], replayed < without, said)
        self.assertEqual((folder / "advice.json").exists(), answer["written"])
        for key in "predicted", "replayed":
            self.assertLessEqual(answer[key]["device_bytes"], answer["budget_bytes"])
        self.assertAlmostEqual(answer["replayed"]["device_bytes"],
                               answer["predicted"]["device_bytes"],
                               delta=0.01 * answer["predicted"]["device_bytes"])
        self.assertIn("what changes of the script could save", said)
        if answer["written"]:
            subprocess.run([running.ROOT / "spillway", "policy", "check", folder / "advice.json"],
                           check=True, timeout=60)

    def test_scripts(self):
        written = 0
        for name, budget in SCRIPTS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as place:
                folder = pathlib.Path(place)
                said, answer = self.advise(folder, name, budget)
                self.check(folder, said, answer)
                written += answer["written"]
        self.assertGreater(written, 0)

    def test_gradients_that_end_with_their_step(self):
        """Neither they, nor cuBLAS's workspace for the backward pass, are what zero_grad would
        free."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([running.ROOT / "spillway", "sim", "--record", f"{folder}/r.rec", "--",
                            self.interpreter, "-c", TRAINING], check=True, timeout=300,
                           capture_output=True)
            done = subprocess.run([running.ROOT / "spillway", "advise", f"{folder}/r.rec",
                                   "--budget", "60%", "--output", f"{folder}/advice.json"],
                                  capture_output=True, text=True, timeout=300, check=False)
            self.assertIn("- optimizer state: ", done.stdout, done.stderr)
            self.assertNotIn("- gradients: ", done.stdout)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Advise))
