#!/usr/bin/env python3
"""Does `spillway fit` say the same of each GPU as a run on that GPU?

usage: scripts/bench cards [--json]

For each of six models the command is asked about ten GPUs at once, and then the model runs on
each of them (`spillway sim --profile`). A row has the GPUs of each verdict, how many runs `fit`
made, and the GPUs on which the two differ, of which there should be none. The last rows find the
largest batch (`fit --vary`), beside runs with every batch. ONLY chooses models, separated by
semicolons.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import bench

GPUS = ("rtx2060-6g", "rtx2080-8g", "rtx3080-10g", "rtx2080ti-11g", "rtx3060-12g", "rtx4080-16g",
        "rtx4000ada-20g", "l4-24g", "rtx5090-32g", "a100-40g")
TRAIN = (bench.HERE / "train.py",)
GPT = (bench.HERE / "torch_spill.py", "--bf16", "--steps", "3")
MODELS = {
    "gpt2": (*TRAIN, "gpt2"),
    "bert": (*TRAIN, "bert"),
    "llama": (*TRAIN, "llama"),
    "gpt2_like, batch 4": (*GPT, "--batch", "4"),
    "gpt2_like, batch 10": (*GPT, "--batch", "10"),
    "inference": (bench.HERE / "torch_infer.py", "--bf16", "--layers", "48", "--width", "1600",
                  "--heads", "25", "--batch", "4", "--steps", "2"),
}
BATCHES = tuple(range(1, 7))
BATCH_GPUS = ("rtx2080-8g", "rtx3060-12g")


class Bench:
    def __init__(self, interpreter, folder):
        self.interpreter, self.answer = interpreter, pathlib.Path(folder) / "answer.json"

    def ask(self, *arguments, command):
        """The answer of a command of spillway about a program."""
        self.answer.unlink(missing_ok=True)
        subprocess.run([bench.COMMAND, *arguments, "--json", self.answer, "--", self.interpreter,
                        *command], env=bench.clean_environment() | {"OMP_NUM_THREADS": "1"},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return json.loads(self.answer.read_text())

    def run_on(self, gpu, command):
        return self.ask("sim", "--profile", gpu, command=command)["verdict"]

    def compare(self, table, name):
        answer = self.ask("fit", "--gpus", ",".join(GPUS), command=MODELS[name])
        told = {row["gpu"]: row["verdict"] for row in answer["gpus"]}
        seen = {gpu: self.run_on(gpu, MODELS[name]) for gpu in GPUS}
        differ = [gpu for gpu in GPUS if told.get(gpu) != seen[gpu]]
        table.row(model=name, fits=count(seen, "fits"), tight=count(seen, "fits too tightly"),
                  spills=count(seen, "spills"), fails=count(seen, "does not fit", "failed"),
                  runs=answer["runs"], differ=", ".join(differ) or "none",
                  verdict="MISSED" if differ else "ok")

    def compare_batches(self, table, gpu):
        """The largest batch that runs without spilling."""
        values = ",".join(map(str, BATCHES))
        answer = self.ask("fit", "--gpus", gpu, "--vary", f"bs={values}",
                          command=(*GPT, "--batch", "{bs}"))
        told = answer["gpus"][0].get("value")
        seen = [batch for batch in BATCHES
                if self.run_on(gpu, (*GPT, "--batch", str(batch))).startswith("fits")]
        largest = str(max(seen)) if seen else None
        table.row(model=f"batch on {gpu}", fits=largest, runs=answer["runs"],
                  differ="none" if told == largest else str(told),
                  verdict="ok" if told == largest else "MISSED")


def count(seen, *verdicts):
    return sum(verdict in verdicts for verdict in seen.values())


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    only = os.environ["ONLY"].split(";") if "ONLY" in os.environ else None
    if unknown := set(only or ()) - set(MODELS):
        sys.exit(f"ONLY={min(unknown)}: expected {'; '.join(MODELS)}")
    table = bench.Table(model=-22, fits=5, tight=6, spills=7, fails=6, runs=5, differ=-30,
                        verdict=-7)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Bench(interpreter, folder)
        for name in only or MODELS:
            comparison.compare(table, name)
        for gpu in () if only else BATCH_GPUS:
            comparison.compare_batches(table, gpu)


if __name__ == "__main__":
    main()
