#!/usr/bin/env python3
"""Rules that compute modules again in the backward pass: the numbers are those without the rule,
bit for bit, and the peak is that of a script that checkpoints every block. The numbers are computed
on the CPU, and the peaks on the simulated GPU."""
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

HERE = pathlib.Path(__file__).resolve().parent
OBJECT = running.ROOT / "libspillway.so"
BLOCKS = {"name": "blocks", "action": {"recompute": True}}


def has(module):
    done = subprocess.run([Recompute.interpreter, "-c", f"import {module}"], capture_output=True)
    return done.returncode == 0


@functools.cache
def on_cpu(arguments, rules, **options):
    """The output of a script, and the lines of spillway."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("SPILLWAY", "LD_"))}
    with tempfile.TemporaryDirectory() as name:
        policy = pathlib.Path(name, "policy.json")
        policy.write_text(json.dumps({"version": 1, "rules": json.loads(rules)}))
        env |= {"LD_PRELOAD": str(OBJECT), "SPILLWAY_POLICY": str(policy), **options}
        done = subprocess.run([Recompute.interpreter, *arguments], env=env, text=True,
                              capture_output=True, cwd=HERE, timeout=600)
    assert done.returncode == 0, done.stderr
    said = [line.partition("spillway: recompute: ")[2] for line in done.stderr.splitlines()
            if line.startswith("spillway")]
    return done.stdout, said


@unittest.skipIf(os.environ.get("BUILD_SANITIZED", "none") != "none",
                 "the interpreter is not built with the sanitizer")
class Recompute(unittest.TestCase):
    interpreter = None
    maxDiff = None

    def check(self, *arguments, rules=(BLOCKS,)):
        """Returns the lines of spillway with the rules."""
        plain, nothing = on_cpu(arguments, "[]")
        again, said = on_cpu(arguments, json.dumps(rules))
        self.assertEqual(nothing, [])
        self.assertGreater(len(plain.splitlines()), 3)
        self.assertEqual(again, plain)
        return said

    # ---- recorded passes ----

    def test_recorded(self):
        """Marks in the recording change no number, and nothing is computed again."""
        for arguments in (("recomputing.py", "small", "ddp", "fsdp2", "--steps", "3"),
                          ("recomputing_ways.py",)):
            recorded, said = on_cpu(arguments, "[]", SPILLWAY_RECORD_MODULES="on")
            self.assertEqual((recorded, said), on_cpu(arguments, "[]"))

    def test_recorded_beside_rules(self):
        _, said = on_cpu(("recomputing.py", "small", "--steps", "3"), json.dumps([BLOCKS]),
                         SPILLWAY_RECORD_MODULES="on")
        self.assertEqual(said[0], "SPILLWAY_RECORD_MODULES has no effect, because the policy has "
                                  "rules about modules")

    # ---- the same numbers ----

    def test_small(self):
        said = self.check("recomputing.py", "small")
        self.assertEqual(said, ["rule blocks: 3 of 3 modules of Model run again in backward: "
                                "blocks.0 to blocks.2"])

    def test_choices(self):
        """A rule by class, a module that an earlier rule excludes, and parts of the modules."""
        excluded = {"name": "not", "match": {"module": "blocks.1"}, "action": {"recompute": False}}
        some = {"name": "some", "match": {"module_class": "Bl?ck", "module": "[a-c]*.*"}}
        for rules, chosen in (
                ([excluded, {**some, "action": {"recompute": True}}], "2 of 2 {}.0 to {}.2"),
                ([{**some, "action": {"recompute": True, "every": 2}}], "2 of 3 {}.0 to {}.2"),
                ([{**some, "action": {"recompute": True, "share": "34%"}}], "2 of 3 {}.0 to {}.1"),
                ([excluded, {**some, "action": {"recompute": True, "share": "34%"}}],
                 "1 of 2 {}.0")):
            said = self.check("recomputing.py", "small", "--steps", "3", rules=rules)
            count, _, names = chosen.replace("{}", "blocks").partition(" blocks")
            self.assertEqual(said, [f"rule some: {count} modules of Model run again in backward: "
                                    f"blocks{names}"])

    def test_models(self):
        if not has("transformers"):
            self.skipTest("transformers is not there")
        names = ["gpt2", "llama", "bert", "t5", "vit", "resnet"] + ["lora"] * has("peft")
        said = self.check("recomputing.py", *names)
        self.assertEqual([re.sub(r".*: (\d+ of \d+) modules of (\w+) .*", r"\1 \2", line)
                          for line in said],
                         ["3 of 3 GPT2LMHeadModel", "3 of 3 LlamaForCausalLM",
                          "3 of 3 BertForMaskedLM", "4 of 4 T5ForConditionalGeneration",
                          "3 of 3 ViTForImageClassification", "2 of 2 ResNetForImageClassification",
                          "3 of 3 PeftModel"][:len(names)])

    def test_isolated(self):
        self.check("-I", "recomputing.py", "small", "--steps", "3")

    def test_autocast(self):
        self.check("recomputing.py", "small", "--autocast")

    def test_trainers(self):
        if not has("transformers, accelerate"):
            self.skipTest("transformers or accelerate is not there")
        said = self.check("recomputing_trainers.py")
        line = "modules of {} run again in backward: {}.0 to {}.2"
        self.assertEqual(said, [
            "rule blocks: 3 of 3 " + line.format("GPT2LMHeadModel", *["transformer.h"] * 2),
            "rule blocks leaves transformer.h.0 to transformer.h.2 alone: it is checkpointed "
            "already",
            "rule blocks: 3 of 3 " + line.format("Model", *["blocks"] * 2)])

    def test_distributed(self):
        said = self.check("recomputing.py", "ddp", "fsdp", "fsdp2", "--steps", "3")
        self.assertEqual(said, [
            "rule blocks: 3 of 3 modules of DistributedDataParallel run again in backward: "
            "module.blocks.0 to module.blocks.2",
            "rule blocks: 3 of 3 modules of FullyShardedDataParallel run again in backward: "
            "blocks.0 to blocks.2",
            "rule blocks: 3 of 3 modules of FSDPModel run again in backward: blocks.0 to blocks.2"])

    def test_compiled(self):
        said = self.check("recomputing.py", "compiled", "--steps", "3")
        self.assertEqual(said, ["rule blocks: 3 of 3 modules of OptimizedModule run again in "
                                "backward: blocks.0 to blocks.2"])

    def test_other_ways(self):
        """Tracers, transforms, second derivatives, modes."""
        said = self.check("recomputing_ways.py")
        self.assertEqual([re.search(r"modules of (\w+) run again", line)[1] for line in said],
                         ["Model", "Nested", "Later"])

    def test_compiled_function(self):
        """The model is not found if it is never called elsewhere."""
        program = ("import torch, recomputing\nmodel = recomputing.Model()\n"
                   "function = torch.compile(lambda batch: model(**batch), backend='eager')\n"
                   "function(recomputing.words()()).backward()")
        said = on_cpu(("-c", program), json.dumps([BLOCKS]))[1]
        self.assertEqual(said, ["rule blocks matches no module (no model was called, except in "
                                "compiled functions)"])

    # ---- modules that cannot run again ----

    def test_odd_modules(self):
        """They are named and left alone, and the first calls have the same numbers too."""
        rule = {"name": "odd", "match": {"module": "odd.*"}, "action": {"recompute": True}}
        said = self.check("recomputing_odd.py", rules=[rule])
        self.assertEqual(said, [
            "rule odd leaves odd.patched alone: it has a forward of its own, beside that of its "
            "class",
            "rule odd leaves odd.scripted alone: it is a script (torch.jit)",
            "rule odd leaves odd.compiled alone: it is compiled already (torch.compile)",
            "rule odd: 11 of 14 modules of Model run again in backward: odd.counter to "
            "odd.positions",
            "rule odd leaves odd.counter alone: it sets calls",
            "rule odd leaves odd.buffer alone: it changes a buffer in place",
            "rule odd leaves odd.changer alone: it changes its input in place",
            "rule odd leaves odd.lister alone: it changes a list",
            "rule odd leaves odd.keeper alone: it sets last",
            "rule odd leaves odd.hooked alone: it is called where the program checkpoints already, "
            "or saves tensors by hooks of its own",
            "rule odd leaves odd.late alone: it changes a buffer in place",
            "rule odd: 5 of 5 modules of Model run again in backward: odd.counter to odd.lister"])

    def test_input_changed_later(self):
        """A second pass would have other numbers, so that it must fail."""
        program = ("import torch\nfrom recomputing import Block\nclass Model(torch.nn.Module):\n"
                   " def __init__(self):\n  super().__init__()\n"
                   "  self.block = torch.nn.Tanh()\n"
                   " def forward(self, x):\n  y = self.block(x)\n  x.add_(1)\n  return y\n"
                   "Model()(torch.ones(2, requires_grad=True) * 1).sum().backward()")
        rule = {"name": "r", "match": {"module": "block"}, "action": {"recompute": True}}
        called = "model = Model()\nmodel.block(torch.ones(2))\nmodel("
        for text in (program.replace("Model()(", called),
                     program.replace("Tanh()", "Hardtanh()").replace("x.add_(1)", "pass").replace(
                         "Model()(", "model = Model()\nwith torch.enable_grad():\n"
                         " model(torch.ones(2, requires_grad=True) * 1)\n"
                         "model.block.inplace = True\nmodel(")):
            with self.assertRaisesRegex(AssertionError, 'RuntimeError: spillway: rule r cannot '
                                        'compute block again: an input of this module was changed'):
                on_cpu(("-c", text), json.dumps([rule]))

    def test_copies_in_each_step(self):
        program = ("import torch, recomputing\n"
                   "model = torch.nn.DataParallel(recomputing.Model().cuda())\n"
                   "batch = {key: value.cuda() for key, value in recomputing.words()().items()}\n"
                   "model(**batch).sum().backward()")
        run = running.Run([self.interpreter, "-W", "ignore", "-c", program],
                          ["--policy", "recompute-blocks", "--devices", "2"],
                          {"PYTHONPATH": str(HERE)})
        self.assertEqual((run.status, run.unexpected()), (0, []))
        self.assertIn("spillway: recompute: rule blocks leaves module.blocks.0 to module.blocks.2 "
                      "alone: DataParallel makes copies of it in each step", run.said())

    # ---- the peak ----

    def peak(self, rules=(), *arguments):
        """The peak in bytes. Without rules (None), the ready-made policy is in force."""
        with tempfile.TemporaryDirectory() as name:
            policy = pathlib.Path(name, "policy.json")
            policy.write_text(json.dumps({"version": 1, "rules": list(rules or ())}))
            run = running.Run([self.interpreter, str(HERE / "recomputing.py"), "large", "--device",
                               "cuda", "--steps", "2", *arguments],
                              ["--policy", "recompute-blocks" if rules is None else str(policy)])
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.unexpected(), [])
        return int(run.stdout.split()[1])

    def test_peak(self):
        plain, by_hand = self.peak(), self.peak((), "--by-hand")
        again = self.peak([BLOCKS])
        half = self.peak([{"name": "half", "match": {"module": "blocks.*"},
                           "action": {"recompute": True, "share": "50%"}}])
        self.assertEqual(self.peak(None), again)
        self.assertLess(by_hand, 0.5 * plain)
        self.assertAlmostEqual(again, by_hand, delta=0.001 * by_hand)
        self.assertAlmostEqual(half, (plain + again) / 2, delta=0.1 * plain)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Recompute))
