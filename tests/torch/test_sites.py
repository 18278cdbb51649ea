#!/usr/bin/env python3
"""Every byte that a training script holds is charged to the line that asked for it.

Models of GPT-2's and of BERT's shape are trained on the simulated GPU; what their sites say is held
against the counters, against the models' own parameters, and against PyTorch's own record of the
same script on its own allocator. Exits with 77 when there is no PyTorch that the simulated GPU can
serve.
"""
import collections
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
# A node, or what is done between nodes: a gradient of several uses is summed, one of a broadcast
# operand reduced.
NODE = r"^(\w+Backward\d*|AccumulateGrad|InputBuffer::\w+|InputMetadata::\w+)$"
PARAMETERS = "import hf_models; print(sum(p.numel() for p in hf_models.bert().parameters()))"


def spillway(*arguments, **settings):
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("SPILLWAY", "PYTORCH_"))}
    done = subprocess.run([str(ROOT / "spillway"), *arguments], env={**env, **settings}, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(f"status {done.returncode}\n{done.stderr}")
    return done.stdout


def of_autograd(site):
    return site.get("thread", "").startswith("pt_autograd_")


class Sites(unittest.TestCase):
    interpreter = None


class Training:
    """The checks for both scripts: `script` with `arguments`, whose model's code is in a file
    called `model`, and which has at least these nodes."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name) / "stats"
        cls.output = cls.train("both", cls.path)
        cls.stats = json.loads(cls.path.read_text())
        cls.sites = cls.stats["sites"]
        cls.device = cls.stats["devices"][0]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def train(cls, sites, stats):
        return spillway("sim", "--memory", "24GiB", "--sites", sites, "--stats", str(stats), "--",
                        cls.interpreter, str(cls.script), *cls.arguments)

    def at_peak(self):
        return [site for site in self.sites if site["device_peak_bytes"] > 0]

    def test_sites_add_up(self):
        def total(key):
            return sum(site[key] for site in self.sites)

        self.assertEqual(total("device_peak_bytes"), self.device["live_peak_bytes"])
        self.assertEqual(total("live_bytes"), self.device["live_bytes"])
        self.assertEqual(total("allocs"), self.device["allocs"])
        self.assertEqual(total("frees"), self.device["frees"])

    def test_nearly_all_is_charged(self):
        known = sum(site["device_peak_bytes"] for site in self.sites
                    if site["id"] and (site["python"] or site["node"]))
        self.assertGreaterEqual(known, 0.99 * self.device["live_peak_bytes"])

    def test_what_is_not_autograd_names_the_script(self):
        for site in self.at_peak():
            if not of_autograd(site):
                self.assertEqual(site["thread"], "main")
                self.assertIn(str(self.script), [frame["file"] for frame in site["python"]], site)
                self.assertEqual(site["python"][-1]["function"], "<module>")

    def test_backward_allocations_name_their_node(self):
        backward = [site for site in self.sites if of_autograd(site)]
        self.assertGreater(len(backward), 10)
        for site in backward:
            self.assertTrue(site["node"], site)
            self.assertRegex(site["node"], NODE)
        nodes = {site["node"] for site in self.sites if of_autograd(site)}
        self.assertLessEqual(self.nodes, nodes)

    def test_forward_allocations_name_the_models_line(self):
        forward = [site for site in self.sites if site["python"] and
                   any(frame["function"] == "forward" for frame in site["python"])]
        self.assertGreater(len(forward), 10)
        for site in forward:
            files = {pathlib.Path(frame["file"]).name for frame in site["python"]}
            self.assertIn(self.model, files, site)
            self.assertTrue(all(frame["line"] > 0 for frame in site["python"]))

    def test_forward_allocations_name_their_modules(self):
        """The chain of classes is that of the frames: the model's class is the outermost, and each
        file of PyTorch's modules has its class."""
        found = collections.Counter()
        for site in self.sites:
            functions = [frame["function"] for frame in site.get("python", [])]
            if "forward" in functions:
                self.assertRegex(site["module"], rf"^{self.outermost}(/\w+)*$", site)
                found[site["module"]] += 1
            elif "_call_impl" not in functions:
                self.assertNotIn("module", site)
        self.assertLessEqual(self.modules, set(found), found)

    def test_optimizer_state(self):
        """Two tensors a parameter, of the parameter's size."""
        parameters = 4 * self.parameters()
        state = [site for site in self.sites if site.get("python") and
                 site["python"][0]["function"] == "_init_group"]
        held = sum(site["device_peak_bytes"] for site in state)
        tensors = sum(site["allocs"] for site in state)
        self.assertGreaterEqual(held, 2 * parameters)
        self.assertLessEqual(held, 2 * parameters + 512 * tensors)

    def test_agrees_with_pytorchs_own_record(self):
        """The bytes by line of Python; what cuBLAS takes for itself PyTorch does not know of."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "recorded"
            spillway("sim", "--memory", "24GiB", "--no-pool", "--", self.interpreter,
                     str(HERE / "recorded.py"), str(self.script), *self.arguments,
                     RECORDED_OUTPUT=str(path))
            recorded = {tuple(row[:3]): tuple(row[3:]) for row in json.loads(path.read_text())
                        if row[0]}
        ours = collections.defaultdict(lambda: [0, 0])
        for site in self.sites:
            if site["python"] and site["api"] == "PyTorch":
                frame = site["python"][0]
                figures = ours[(frame["file"], frame["function"], frame["line"])]
                figures[0] += site["allocs"]
                figures[1] += site["total_bytes"]
        self.assertGreaterEqual(len(recorded), 15)
        for place in sorted(set(ours) | set(recorded)):
            with self.subTest(place):
                self.assertEqual(tuple(ours.get(place, (0, 0))), recorded.get(place, (0, 0)))


class Gpt2(Training, Sites):
    script, model = HERE / "gpt2_like.py", "gpt2_like.py"
    arguments = ["--layers", "2", "--width", "256", "--heads", "4", "--vocabulary", "5000",
                 "--context", "256", "--batch", "4", "--steps", "2"]
    nodes = {"MmBackward0", "LogSoftmaxBackward0", "AddmmBackward0"}
    outermost = "Model"
    modules = {"Model", "Model/Block/Attention", "Model/Block/Attention/Linear",
               "Model/Block/LayerNorm", "Model/Embedding"}

    def parameters(self):
        count = re.search(r"^parameters: ([\d,]+)$", self.output, re.MULTILINE).group(1)
        return int(count.replace(",", ""))

    def test_the_command_shows_them(self):
        shown = json.loads(spillway("sites", str(self.path), "--json", "--top", "1000"))
        device = shown["devices"][0]
        self.assertEqual(sum(row["bytes"] for row in device["at_peak"]),
                         self.device["live_peak_bytes"])
        self.assertEqual(sum(row["bytes"] for row in device["at_exit"]), self.device["live_bytes"])
        self.assertTrue(any(self.script.name in row["label"] for row in device["at_peak"]))
        self.assertTrue(any(re.fullmatch(r"gpt2_like\.py:\d+ forward via functional\.py:\d+ "
                                         r"layer_norm, aten::layer_norm in LayerNorm", row["label"])
                            for row in device["at_peak"]), device["at_peak"])
        for row in device["at_peak"]:
            self.assertIn("thread:", row["site"])
        table = spillway("sites", str(self.path))
        self.assertIn("at the peak", table)
        self.assertIn("on pt_autograd_0", table)
        full = spillway("sites", str(self.path), "--full", "--top", "1000")
        self.assertRegex(full, r"(?m)^ +operator aten::layer_norm$")
        self.assertRegex(full, r"(?m)^ +modules Model/Block/LayerNorm$")

    def test_off_and_parts(self):
        for mode, native, python in (("off", 0, 0), ("native", 1, 0), ("python", 0, 1)):
            path = pathlib.Path(self.folder.name) / mode
            self.train(mode, path)
            stats = json.loads(path.read_text())
            with self.subTest(mode):
                self.assertEqual("sites" in stats, mode != "off")
                self.assertEqual(stats["devices"][0]["live_peak_bytes"],
                                 self.device["live_peak_bytes"])
                for key, there in (("native", native), ("python", python)):
                    named = [site for site in stats.get("sites", []) if site.get(key)]
                    self.assertEqual(len(named) > 20, bool(there))


class Bert(Training, Sites):
    script, model = HERE / "hf_models.py", "modeling_bert.py"
    arguments = ["bert"]
    nodes = {"AddmmBackward0", "NativeLayerNormBackward0", "EmbeddingBackward0"}
    outermost = r"Bert\w+"
    modules = set()

    def parameters(self):
        done = subprocess.run([self.interpreter, "-c", PARAMETERS], cwd=HERE, text=True,
                              capture_output=True, check=True)
        return int(done.stdout)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Sites))
