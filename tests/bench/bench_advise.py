#!/usr/bin/env python3
"""What `spillway advise` predicts for training scripts, and what replays of its policies show.

usage: scripts/bench advise [--json]

For each script and budget the row has what the policy was predicted to hold on the device and on
the host and how much longer a step takes, the same of its replay, and a step that spills without
rules. Where repeated blocks can be recomputed, the policy is the faster one of two. `least step` is
what placing memory on the host must cost by the same model, if any part of each call site's blocks
could go. Times are those of a step, as multiples of a step with ample memory. A policy is written
only where its replay is faster than spilling without rules, and at most three times as slow as a
step with ample memory, so `written` says `default` otherwise. The verdict is MISSED when a
written policy holds 1 % more or less than predicted. ONLY and BUDGETS choose scripts and budgets,
separated by commas.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import bench

sys.path.insert(0, str(bench.HERE.parent / "torch"))
import corpus  # pylint: disable=wrong-import-position

SCRIPTS = ("gpt2_like", "accumulation", "checkpointing", "convolution", "efficient_transformer",
           "hf_bert", "hf_gpt2", "hf_llama", "lstm", "mixed_precision", "data_loader",
           "variable_length")
SHARES = (90, 75, 60)  # percent of the peak
OFF_MOST = 0.01  # of the predicted peak


def advise(interpreter, name, share, folder):
    """The answer of the command, or None when it failed."""
    answer = folder / "answer.json"
    script, *arguments = corpus.SCRIPTS[name].command
    done = subprocess.run(
        [bench.COMMAND, "advise", "--budget", f"{share}%", "--json", answer,
         "--output", folder / "advice.json", "--", interpreter,
         bench.HERE.parent / "torch" / script, *arguments],
        env=bench.clean_environment() | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, check=False)
    if not answer.exists():
        print(done.stderr, file=sys.stderr)
        return None
    return json.loads(answer.read_text())


def said(answer):
    """What the command did."""
    if answer["answer"] != "placed":
        return answer["answer"]
    return "policy" if answer["written"] else "default"


def way_of(answer):
    """The way that was replayed: the faster one of two."""
    replayed = [answer[name] for name in ("recompute", "placement")
                if "replayed" in answer.get(name, {})]
    return min(replayed, key=lambda way: way["replayed"]["step_ratio"] or 1e9, default=None)


def verdict(answer):
    if not answer["written"]:
        return ""
    predicted, replayed = (way_of(answer)[key]["device_bytes"] for key in ("predicted", "replayed"))
    return "ok" if abs(replayed - predicted) <= OFF_MOST * predicted else "MISSED"


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    table = bench.Table(script=-22, budget=-6, peak_MiB=8, device_MiB=10, replayed_MiB=12,
                        host_MiB=8, least_step=10, step=6, replayed_step=13, default_step=12,
                        written=-10, verdict=-7)
    for name in bench.chosen("ONLY", SCRIPTS):
        for share in map(int, bench.chosen("BUDGETS", SHARES)):
            with tempfile.TemporaryDirectory() as folder:
                answer = advise(interpreter, name, share, pathlib.Path(folder))
            if answer is None:
                table.row(script=name, budget=f"{share} %", verdict="MISSED: failed")
                continue
            way = way_of(answer) or {"predicted": {}, "replayed": {}}
            predicted, replayed = way["predicted"], way["replayed"]
            table.row(script=name, budget=f"{share} %", peak_MiB=bench.mib(answer["peak_bytes"]),
                      device_MiB=bench.mib(predicted.get("device_bytes")),
                      replayed_MiB=bench.mib(replayed.get("device_bytes")),
                      host_MiB=bench.mib(replayed.get("host_bytes")),
                      least_step=answer.get("placement", {}).get("least_step_ratio"),
                      step=predicted.get("step_ratio"),
                      replayed_step=replayed.get("step_ratio") or None,
                      default_step=answer["without_rules"]["step_ratio"] or None,
                      written=said(answer), verdict=verdict(answer))


if __name__ == "__main__":
    main()
