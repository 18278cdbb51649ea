#!/usr/bin/env python3
"""The time of a step that `spillway sim` and `spillway fit` estimate for a training script.

Exits with 77 when there is no PyTorch that the simulated GPU can serve.
"""
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import running
import wheel

# Large enough for arithmetic to count: 4096 tokens, width 1024.
MODEL = ("--layers", "4", "--width", "1024", "--heads", "16", "--vocabulary", "8192", "--context",
         "512", "--batch", "8", "--bf16", "--steps", "4", "--made-on-device")
TOKENS, WIDTH, LAYERS, VOCABULARY = 8 * 512, 1024, 4, 8192
# Multiplications of a token in the forward pass, but for those of attention.
FORWARD = LAYERS * 12 * WIDTH ** 2 + VOCABULARY * WIDTH
# Those that run again: PyTorch leaves out the last matrix of a block, whose result is not kept.
AGAIN = LAYERS * 8 * WIDTH ** 2
T4 = 0.8 * 65.1e12  # operations a second that a T4 sustains (src/gpu/rates.def)
CARD = ("--profile", "t4-16g")
# Each addition and copy reads 32 MiB or half of it. In the first two, neighbouring elements of a
# row are next to each other.
LAYOUTS = """
import torch

x = torch.zeros(8, 64, 128, 128, device="cuda")
bias = torch.zeros(1, 64, 1, 1, device="cuda")
torch.cuda.synchronize()
x + bias
x[:, :32] + 1
x.transpose(1, 3).contiguous()
x[..., ::2] + 1
"""


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
        step = self.step(*CARD)
        self.assertEqual(step["basis"], "roofline")
        self.assertLess(step["ms"][0], step["estimate_ns"] / 1e6)
        self.assertGreater(step["ms"][1], step["estimate_ns"] / 1e6)
        least = 3 * 2 * TOKENS * FORWARD / T4 * 1e9
        self.assertAlmostEqual(step["arithmetic_ns"] / least, 1, delta=0.1)
        self.assertLessEqual(step["arithmetic_ns"] + step["memory_ns"], step["kernels_ns"])

    def test_recomputation_costs_its_products(self):
        again = self.step(*CARD, words=("--checkpointing",))["arithmetic_ns"]
        self.assertAlmostEqual(again / self.step(*CARD)["arithmetic_ns"],
                               1 + AGAIN / (3 * FORWARD), delta=0.03)

    def test_gaps_cost_bandwidth(self):
        run = running.Run([self.interpreter, "-c", LAYOUTS], [*CARD, "--no-pool"], log=True)
        self.assertEqual(run.status, 0, run.stderr)
        found = [re.search(r"estimate (\d+) ns: (\S+), ", line) for line in run.log]
        last = [(match[2], int(match[1])) for match in found if match][-4:]
        self.assertEqual([kind for kind, _ in last], ["runs", "runs", "strided", "strided"])
        self.assertGreater(last[2][1], 1.5 * last[0][1])

    def test_the_pool_changes_no_product(self):
        """Without it, tensors are in segments of PyTorch's cache, and more of them are guessed: the
        step seems 1.57 times as long with PyTorch 2.15."""
        pool, plain = self.step(*CARD), self.step(*CARD, "--no-pool")
        self.assertEqual(plain["kernels"], pool["kernels"])
        self.assertEqual(plain["arithmetic_ns"], pool["arithmetic_ns"])
        self.assertLess(plain["estimate_ns"], 1.7 * pool["estimate_ns"])

    def test_fit_says_the_same_of_a_card_that_it_did_not_run(self):
        found = {row["gpu"]: row for row in self.answer("--gpus", "t4-16g,a10g-24g",
                                                        command="fit")["gpus"]}
        self.assertFalse(found["a10g-24g"]["was_run"])
        for card, row in found.items():
            for said, was in zip(row["step_ms"], self.step("--profile", card)["ms"]):
                self.assertAlmostEqual(said / was, 1, delta=0.05, msg=card)

    def test_spilling(self):
        """The factor has a bound for moves that are hidden and one for those that are not."""
        peak = self.answer(*CARD)["devices"][0]["live_peak_bytes"]
        # With fewer steps, none may have been measured before the last one ends.
        answer = self.answer(*CARD, "--memory", str(peak * 8 // 10), words=("--steps", "8"))
        self.assertEqual(answer["verdict"], "spills")
        step = answer["devices"][0]["step"]
        least, most = step["times_as_long_by_spilling"]
        self.assertGreaterEqual(least, 1)
        self.assertGreater(most, least)
        self.assertLess(most, 10)
        self.assertAlmostEqual(step["estimate_ns"] / self.step(*CARD)["estimate_ns"], 1, delta=0.15)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Step))
