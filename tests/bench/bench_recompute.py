#!/usr/bin/env python3
"""What `spillway advise` makes of trainings in budgets, beside other ways to save memory.

usage: scripts/bench recompute [--json]

Each program (torch_recompute.py) runs with ample memory, on devices of shares of its peak without
rules and with the policy that `spillway advise` makes, and with ample memory as a script that
checkpoints every block (`by hand`) and one that saves on the CPU (`save_on_cpu`), which have no
budget. Times are those of a step, as multiples of a step with ample memory. `-` means that the way
does not fit, or is not offered. The verdict is MISSED when the policy holds 1 % more or less than
predicted; at 50 %, also when a step takes more than 1.4 times as long although checkpointing by
hand fits and takes at most 1.3. ONLY and BUDGETS choose programs and budgets, separated by commas.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import bench

PROGRAM = bench.HERE / "torch_recompute.py"
PROGRAMS = ("gpt2", "llama", "lora", "bert", "t5", "vit", "resnet", "unet")
BUDGETS = (75, 50, 35)  # percent of the peak
OFF_MOST = 0.01  # of the predicted peak
SLOW, SLOW_BY_HAND = 1.4, 1.3  # times a step with ample memory, where half of the memory is there


def advise(interpreter, budget, arguments):
    """The answer of the command, or None when it failed."""
    with tempfile.TemporaryDirectory() as folder:
        answer = pathlib.Path(folder, "answer.json")
        done = subprocess.run(
            [bench.COMMAND, "advise", "--budget", budget, "--json", answer,
             "--output", pathlib.Path(folder, "advice.json"), "--", interpreter, PROGRAM,
             *arguments],
            env=bench.clean_environment() | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, check=False)
        if answer.exists():
            return json.loads(answer.read_text())
    print(done.stderr, file=sys.stderr)
    return None


def other_way(interpreter, name, way, plain):
    """The peak of a changed script, and its step as a multiple of that of the plain script."""
    answer = advise(interpreter, "100000GiB", (name, way))
    if answer is None or plain["step_ns"] == 0:
        return None
    return answer["peak_bytes"], answer["step_ns"] / plain["step_ns"]


def verdict(share, answer, by_hand):
    replayed = answer["recompute"].get("replayed") if "recompute" in answer else None
    if not answer["written"] or not replayed:
        return ""
    predicted = answer["recompute"]["predicted"]["device_bytes"]
    if (not answer["recompute"]["spilled_bytes"] and
            abs(replayed["device_bytes"] - predicted) > OFF_MOST * predicted):
        return "MISSED"
    fits_by_hand = by_hand and by_hand[0] <= 0.97 * answer["budget_bytes"]
    if (share == 50 and fits_by_hand and by_hand[1] <= SLOW_BY_HAND and
            replayed["step_ratio"] > SLOW):
        return "MISSED: slow"
    return "ok"


def add_row(table, name, share, answer, others):
    found = answer.get("recompute", {})
    predicted, replayed = found.get("predicted", {}), found.get("replayed", {})
    by_hand = others["hand"]
    table.row(program=name, budget=f"{share} %", peak_MiB=bench.mib(answer["peak_bytes"]),
              blocks=found.get("modules"), predicted_MiB=bench.mib(predicted.get("device_bytes")),
              replayed_MiB=bench.mib(replayed.get("device_bytes")),
              host_MiB=bench.mib(replayed.get("host_bytes")) or 0,
              predicted=predicted.get("step_ratio"), step=replayed.get("step_ratio") or None,
              spilling=answer["without_rules"]["step_ratio"] or None,
              by_hand_MiB=bench.mib(by_hand[0]) if by_hand else None,
              by_hand=by_hand[1] if by_hand else None,
              save_on_cpu_MiB=bench.mib(others["offload"][0]) if others["offload"] else None,
              save_on_cpu=others["offload"][1] if others["offload"] else None,
              verdict=verdict(share, answer, by_hand))


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    table = bench.Table(program=-8, budget=-6, peak_MiB=9, blocks=6, predicted_MiB=13,
                        replayed_MiB=12, host_MiB=9, predicted=9, step=6, spilling=8,
                        by_hand_MiB=11, by_hand=7, save_on_cpu_MiB=15, save_on_cpu=11, verdict=-7)
    for name in bench.chosen("ONLY", PROGRAMS):
        others = None
        for share in map(int, bench.chosen("BUDGETS", BUDGETS)):
            answer = advise(interpreter, f"{share}%", (name,))
            if answer is None:
                table.row(program=name, budget=f"{share} %", verdict="MISSED: failed")
                continue
            others = others or {way: other_way(interpreter, name, way, answer)
                                for way in ("hand", "offload")}
            add_row(table, name, share, answer, others)


if __name__ == "__main__":
    main()
