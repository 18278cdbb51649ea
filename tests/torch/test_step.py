#!/usr/bin/env python3
"""The time of a step that `spillway sim` and `spillway fit` estimate for a training script.

Exits with 77 when there is no PyTorch that the simulated GPU can serve.
"""
import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import running
import wheel

# Large enough for arithmetic to count: 4096 tokens, width 1024.
MODEL = ("--layers", "4", "--width", "1024", "--heads", "16", "--vocabulary", "8192", "--context",
         "512", "--batch", "8", "--bf16", "--steps", "5")
TOKENS, WIDTH, LAYERS, VOCABULARY, LENGTH = 8 * 512, 1024, 4, 8192, 512
# Products of the forward pass: four matrices of a layer, attention (written out), the last one.
FORWARD = 2 * TOKENS * (LAYERS * (12 * WIDTH ** 2 + 2 * LENGTH * WIDTH) + VOCABULARY * WIDTH)
A100 = 271.2e12  # operations a second that an A100 sustains (src/gpu/rates.def)


class Step(unittest.TestCase):
    interpreter = None

    @functools.cache
    def answer(self, *flags, command="sim", words=()):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "answer.json")
            done = subprocess.run(
                [running.ROOT / "spillway", command, *flags, "--json", path, "--",
                 self.interpreter, running.HERE / "gpt2_like.py", *MODEL, *words],
                text=True, capture_output=True, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(path.read_text())

    def step(self, *flags, words=()):
        step = self.answer(*flags, words=words)["devices"][0]["step"]
        self.assertIsNotNone(step)
        return step

    def test_products_cost_their_operations(self):
        step = self.step("--profile", "a100-80g")
        self.assertEqual(step["basis"], "roofline")
        self.assertLess(step["ms"][0], step["estimate_ns"] / 1e6)
        self.assertGreater(step["ms"][1], step["estimate_ns"] / 1e6)
        least = 3 * FORWARD / A100 * 1e9
        self.assertGreater(step["arithmetic_ns"], 0.7 * least)  # memory limits some products
        self.assertLess(step["arithmetic_ns"], 1.3 * least)
        self.assertLessEqual(step["arithmetic_ns"] + step["memory_ns"], step["kernels_ns"])

    def test_recomputation_costs_a_third(self):
        """Of the products: the forward passes of the blocks run again."""
        plain = self.step("--profile", "t4-16g")["arithmetic_ns"]
        again = self.step("--profile", "t4-16g", words=("--checkpointing",))["arithmetic_ns"]
        blocks = 1 - 2 * TOKENS * VOCABULARY * WIDTH / FORWARD
        self.assertAlmostEqual(again / plain, 1 + blocks / 3, delta=0.05)

    def test_the_pool_changes_no_step(self):
        pool = self.step("--profile", "a100-80g")
        plain = self.step("--profile", "a100-80g", "--no-pool")
        self.assertEqual(plain["kernels"], pool["kernels"])
        self.assertAlmostEqual(plain["arithmetic_ns"] / pool["arithmetic_ns"], 1, delta=0.02)
        self.assertAlmostEqual(plain["estimate_ns"] / pool["estimate_ns"], 1, delta=0.25)

    def test_fit_says_the_same_of_a_card_that_it_did_not_run(self):
        found = {row["gpu"]: row for row in self.answer(
            "--gpus", "a100-80g,rtx3090-24g,t4-16g", command="fit")["gpus"]}
        for card in found:
            ran = self.step("--profile", card)["ms"]
            for said, was in zip(found[card]["step_ms"], ran):
                self.assertAlmostEqual(said / was, 1, delta=0.1, msg=card)
        self.assertLess(found["a100-80g"]["step_ms"][1], found["t4-16g"]["step_ms"][0])

    def test_spilling(self):
        """The factor has a bound for moves that are hidden and one for those that are not."""
        peak = self.answer("--profile", "a100-80g")["devices"][0]["live_peak_bytes"]
        answer = self.answer("--profile", "a100-80g", "--memory", str(peak * 8 // 10))
        self.assertEqual(answer["verdict"], "spills")
        least, most = answer["devices"][0]["step"]["times_as_long_by_spilling"]
        self.assertGreaterEqual(least, 1)
        self.assertGreater(most, 1.1)
        self.assertLess(most, 30)
        self.assertAlmostEqual(answer["devices"][0]["step"]["estimate_ns"] /
                               self.step("--profile", "a100-80g")["estimate_ns"], 1, delta=0.1)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Step))
