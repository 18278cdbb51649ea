#!/usr/bin/env python3
"""Ready-made policies against the call sites of real runs: what a rule decides is exactly what it
is meant for, byte by byte."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import wheel

ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
HERE = pathlib.Path(__file__).resolve().parent


def sites_at_peak(interpreter, script, *arguments):
    """What a script printed, and the sites that held memory when the device held most: for each its
    text and its bytes."""
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
        for name in ("adam", "adamw_fused", "adamw_loop", "sgd", "sgd_fused", "sgd_loop",
                     "adagrad", "rmsprop"):
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


if __name__ == "__main__":
    INTERPRETER, problem = wheel.find()
    if problem:
        print(problem)
        sys.exit(77)
    unittest.main()
