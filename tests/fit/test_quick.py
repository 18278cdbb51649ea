#!/usr/bin/env python3
"""Ten rows of the benchmark `fit`, compared to the byte with the figures of golden.json.

usage: test_quick.py BUILD [--write]

A difference means that the simulated GPU or the wheel of PyTorch changed what a program needs; if
that is meant, --write writes the new figures, and their distance from the measurements is judged by
`scripts/bench fit`. The rows run with the libraries of .venv.
"""
import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "torch"))
import wheel  # pylint: disable=wrong-import-position

GOLDEN = HERE / "golden.json"
BUILD = pathlib.Path(sys.argv[1]).resolve()
MEMORY = "12037MiB"
ROWS = [
    {"model": "VGG16", "optimizer": "Adagrad", "batch": 64},
    {"model": "ResNet101", "optimizer": "SGD", "batch": 96},
    {"model": "MobileNetV2", "optimizer": "AdamW", "batch": 251},
    {"model": "MnasNet", "optimizer": "RMSprop", "batch": 200},
    {"model": "ConvNeXtTiny", "optimizer": "Adam", "batch": 128},
    {"model": "RegNetY400MF", "optimizer": "SGD", "batch": 300, "zero_grad": 2},
    {"model": "distilbert/distilgpt2", "optimizer": "AdamW", "batch": 12},
    {"model": "T5-small", "optimizer": "SGD", "batch": 16, "zero_grad": 1},
    {"model": "facebook/opt-125m", "optimizer": "Adam", "batch": 64},
    {"model": "Qwen/Qwen3.5-0.8B", "method": "LoRA", "checkpointing": True, "batch": 1,
     "length": 128, "dtype": "bfloat16"},
]


def name(row):
    return " ".join(str(part) for part in (row["model"], row.get("optimizer", row.get("method")),
                                           row["batch"]))


def versions(interpreter):
    question = "import torch, transformers; print(torch.__version__, transformers.__version__)"
    return subprocess.run([interpreter, "-c", question], capture_output=True, text=True,
                          check=True).stdout.split()


def measure(interpreter):
    """{name: figures} of all rows."""
    done = subprocess.run([BUILD / "spillway", "sim", "--no-pool", "--profile", "a100-40g",
                           "--memory", MEMORY, "--", interpreter, HERE / "train.py",
                           json.dumps(ROWS)], capture_output=True, text=True, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(results) != len(ROWS):
        raise AssertionError(done.stderr[-2000:])
    return {name(row): result for row, result in zip(ROWS, results)}


class Quick(unittest.TestCase):
    interpreter = None
    maxDiff = None

    def test_figures(self):
        golden = json.loads(GOLDEN.read_text())
        if versions(self.interpreter) != golden["torch, transformers"]:
            self.skipTest("the figures are those of other versions")
        self.assertEqual(measure(self.interpreter), golden["rows"])


if __name__ == "__main__":
    if "--write" in sys.argv:
        found = wheel.find()[0]
        golden = {"torch, transformers": versions(found), "rows": measure(found)}
        GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")
    else:
        sys.exit(wheel.run_tests(Quick))
