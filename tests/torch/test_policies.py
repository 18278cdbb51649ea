#!/usr/bin/env python3
"""Ready-made policies against the call sites of real runs: what a rule decides is exactly what it
is meant for, byte by byte."""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import running
import wheel

LONG = "--long" in sys.argv
OPTIMIZERS = ("adam", "adamw_fused", "adamw_loop", "sgd", "sgd_fused", "sgd_loop", "adagrad",
              "rmsprop")
GRANULE = 2 << 20
ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
HERE = pathlib.Path(__file__).resolve().parent


def sites_at_peak(interpreter, script, *arguments):
    """A script's output, and the sites that held memory at the device's peak: text and bytes of
    each."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("SPILLWAY", "PYTORCH_", "LD_"))}
    with tempfile.TemporaryDirectory() as folder:
        stats = f"{folder}/stats"
        done = subprocess.run([ROOT / "spillway", "sim", "--memory", "8GiB", "--stats", stats, "--",
                               interpreter, HERE / script, *arguments], env=env, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, done.stderr
        listed = subprocess.run([ROOT / "spillway", "sites", stats, "--json", "--top", "1000000"],
                                text=True, capture_output=True, check=True)
    device = json.loads(listed.stdout)["devices"][0]
    return done.stdout, [(site["site"], site["bytes"]) for site in device["at_peak"]]


def decided(policy, sites):
    """The bytes that each rule decides; None: no rule."""
    bytes_of = {}
    for site, size in sites:
        done = subprocess.run([ROOT / "spillway", "policy", "explain", policy, "--site", site],
                              text=True, capture_output=True, check=True)
        rule = re.search(r'^rule \d+ "(\S+)" \(.*\) decides:$', done.stdout, re.M)
        rule = rule[1] if rule else None
        bytes_of[rule] = bytes_of.get(rule, 0) + size
    return bytes_of


class Policies(unittest.TestCase):
    maxDiff = None

    def test_optimizer_to_host(self):
        rules = {"sgd": "sgd-momentum", "sgd_fused": "sgd-momentum", "sgd_loop": "sgd-momentum",
                 "adagrad": "adagrad-sums"}
        for name in OPTIMIZERS if LONG else ("adam", "adamw_fused", "sgd_loop", "adagrad"):
            with self.subTest(name):
                output, sites = sites_at_peak(INTERPRETER, "optimizers.py", name)
                state = int(output.split()[0])
                self.assertGreater(state, 1 << 20)
                found = decided("optimizer-to-host", sites)
                self.assertGreaterEqual(found.pop(None), 1 << 30)
                self.assertEqual(found, {rules.get(name, "optimizer-state"): state})

    def test_resumed_optimizer_to_host(self):
        output, sites = sites_at_peak(INTERPRETER, "optimizers.py", "adam", "--resume")
        found = decided("optimizer-to-host", sites)
        self.assertEqual(found.get("resumed-state"), int(output.split()[0]))

    def test_layers(self):
        """The other policies that match by site, on a model whose tensors can be counted."""
        output, sites = sites_at_peak(INTERPRETER, "layers.py")
        large = [(f"{site}; size:2MiB", size) for site, size in sites]
        expected = json.loads(output)
        for policy in expected:
            found = decided(policy, large)
            found.pop(None)
            self.assertEqual(found, expected[policy], policy)


@functools.cache
def enforced(policy, script, *arguments, memory="8GiB", flags=()):
    """A script's output with a policy in force, the statistics of its device, and those of the
    rules by name."""
    run = running.Run([INTERPRETER, str(HERE / script), *arguments],
                      [*flags, *([] if policy is None else ["--policy", str(policy)]),
                       "--memory", str(memory)])
    assert run.status == 0, run.stderr
    stats = run.stats["0"]
    return run, stats["devices"][0], {rule["name"]: rule for rule in stats.get("rules", [])}


def granules(size):
    return -(-size // GRANULE) * GRANULE


GPT2 = ["gpt2_like.py", "--layers", "4", "--width", "256", "--heads", "4", "--vocabulary", "5000",
        "--context", "256", "--batch", "8", "--steps", "3"]


class InForce(unittest.TestCase):
    """The effects of the policies."""
    maxDiff = None

    def check_optimizer(self, name, *arguments):
        run, device, rules = enforced("optimizer-to-host", "optimizers.py", name, *arguments)
        state = int(run.stdout.split()[0])
        held = [rule["host_peak_bytes"] for rule in rules.values() if rule["host_peak_bytes"] > 0]
        # With --resume a second state is made, by another rule, when the first one is gone.
        self.assertEqual(held, [state] * (len(arguments) + 1))
        self.assertEqual(device["host_peak_bytes"], granules(state))
        self.assertEqual((device["spilled_bytes"], device["promoted_bytes"]), (0, 0))
        self.assertEqual([rule["unmet"] for rule in rules.values()], [0] * len(rules))
        for rule in rules.values():
            self.assertEqual(rule["host_peak_bytes"], rule["live_peak_bytes"])

    def test_optimizer_to_host(self):
        self.check_optimizer("adam")
        self.check_optimizer("sgd")

    @unittest.skipUnless(LONG, "long")
    def test_every_optimizer_to_host(self):
        for name in OPTIMIZERS:
            with self.subTest(name):
                self.check_optimizer(name)
        self.check_optimizer("adam", "--resume")

    def test_observe(self):
        """Changes nothing."""
        keys = ("allocs", "frees", "live_peak_bytes", "committed_peak_bytes", "host_peak_bytes",
                "driver_calls")
        _, without, _ = enforced(None, "optimizers.py", "adam")
        _, device, rules = enforced("observe", "optimizers.py", "adam")
        self.assertEqual({key: device[key] for key in keys}, {key: without[key] for key in keys})
        self.assertEqual(rules["observe"]["matched"], device["allocs"])
        self.assertEqual(rules["observe"]["live_peak_bytes"], device["live_peak_bytes"])

    def test_layers(self):
        """Each rule decides on the blocks it is meant for, in the process as in `explain`."""
        for policy in ("embeddings-stay", "activations-to-host-first"):
            run, device, rules = enforced(policy, "layers.py")
            expected = json.loads(run.stdout)[policy]
            if "activations" in expected:
                expected["activations"] -= 2 * 1024 * 4  # the rule is for 1 MiB and more
                expected["workspaces"] = 2 * 32 << 20  # also what the run no longer has at its end
            self.assertEqual({name: rule["live_peak_bytes"] for name, rule in rules.items()
                              if rule["matched"] > 0}, expected)
            self.assertEqual((device["host_peak_bytes"], device["spilled_bytes"]), (0, 0))

    def test_activations_go_first(self):
        """On a device that is too small only activations leave it."""
        _, plain, _ = enforced(None, *GPT2)
        memory = plain["live_peak_bytes"] * 4 // 5
        _, device, rules = enforced("activations-to-host-first", *GPT2, memory=memory)
        moved = rules["activations"]["spilled_bytes"]
        self.assertGreater(moved, 0)
        # Whole granules move, which a block of another kind may share.
        others = sum(rule["spilled_bytes"] for rule in rules.values()) - moved
        self.assertEqual(others, 0)
        self.assertEqual(rules["workspaces"]["unmet"], 0)

    def test_embeddings_stay(self):
        _, plain, _ = enforced(None, *GPT2)
        _, device, rules = enforced("embeddings-stay", *GPT2,
                                    memory=plain["live_peak_bytes"] * 4 // 5)
        self.assertGreater(device["spilled_bytes"], 0)
        for name in ("embeddings", "normalisation", "their-gradients"):
            self.assertGreater(rules[name]["matched"], 0, name)
            self.assertEqual((rules[name]["spilled_bytes"], rules[name]["host_bytes"],
                              rules[name]["unmet"]), (0, 0, 0), name)

    def test_inference_weights_on_host(self):
        run, device, rules = enforced("inference-weights-on-host", "inference.py")
        weights, host, inside = map(int, run.stdout.split())
        self.assertEqual(rules["weights"]["live_peak_bytes"], weights)
        self.assertEqual(device["host_peak_bytes"], host)
        self.assertEqual((device["spilled_bytes"], rules["weights"]["unmet"]), (0, 0))
        self.assertEqual(rules["weights"]["host_peak_bytes"], inside)

    def test_lazy_start(self):
        """A warm-up that is freed before any work takes nothing of the device."""
        _, without, _ = enforced(None, "warm_up.py", "0")
        _, device, rules = enforced("lazy-start", "warm_up.py", "6")
        self.assertEqual(rules["first-large"]["live_peak_bytes"], 6 << 30)
        # Blocks lie elsewhere than without a warm-up, which may take another chunk.
        self.assertLessEqual(device["committed_peak_bytes"],
                             without["committed_peak_bytes"] + GRANULE)
        _, small, _ = enforced("lazy-start", "warm_up.py", "1")
        self.assertEqual(device["committed_peak_bytes"], small["committed_peak_bytes"])
        _, device, _ = enforced(None, "warm_up.py", "6")
        self.assertGreaterEqual(device["committed_peak_bytes"], 6 << 30)

    def test_half_gpu(self):
        """A process stays below its share, and what is beyond it is on the host."""
        _, device, rules = enforced("half-gpu", "blocks.py", "12", "256", memory="4GiB")
        cap, block = (4 << 30) // 1000 * 450, 256 << 20
        on_device = cap // block * block
        self.assertEqual(rules["cap"]["live_peak_bytes"], 12 * block)
        self.assertEqual(rules["cap"]["host_peak_bytes"], 12 * block - on_device)
        self.assertEqual(device["committed_peak_bytes"], on_device)
        self.assertEqual(rules["cap"]["unmet"], 0)


if __name__ == "__main__":
    INTERPRETER, problem = wheel.find()
    if problem:
        print(problem)
        sys.exit(77)
    unittest.main(argv=[word for word in sys.argv if word != "--long"])
