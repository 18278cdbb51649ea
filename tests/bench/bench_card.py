#!/usr/bin/env python3
"""Steps with a part of their memory on the host, at the scale of a card.

One step of each program is recorded with the real PyTorch (steps.py) and repeated at the costs that
were measured on an H100. The simulated kernels are those of an ideal GPU; here they take 1.75 times
as long (GPT-2, as on the card) or 1.5 times (the others). "with gap" adds a kernel of 25 ms that
uses no memory to each step. It stands for the time in which the card waited for the script's text
generator. Devices hold 90, 75 and 50 % of the live peak; `plain` is the same plan where all fits. A
figure is the mean of five steps, from the third one on. ONLY chooses programs, separated by commas.

`bound` is what no method can beat that moves data to the kernels (floor_ns of spill_model.py),
times plain. It knows the link in each direction and the time of the kernels, and supposes that what
leaves the device is written back. With `safe` and `off` it is higher, because memory moves only
while the device rests. `times the bound` is the step divided by it.
"""
import os
import pathlib
import sys
import tempfile

import bench
import plans
import spill_log
import spill_model
import steps

SHARES = (90, 75, 50)  # percent of the live peak that the device holds
STEPS, MEASURED = 8, 5
GAP_NS = 25_000_000
MOVE_WAIT = 5000  # ms, of the clock on the wall: it says nothing of simulated time
WAYS = ("safe", "guarded", "off")
GPT2 = ("gpt2", ["torch_spill.py", "--bf16", "--batch", "8", "--steps", "4"], 1.75)
PROGRAMS = [GPT2, *((name, ["torch_card.py", name], 1.5)
                    for name in ("llama", "lora", "resnet", "unet", "inference"))]
TARGETS = {("gpt2 with gap", 90, "guarded"): 1.15, ("gpt2 with gap", 75, "guarded"): 2.1,
           ("gpt2 with gap", 50, "guarded"): 4.0, ("gpt2 with gap", 90, "safe"): 1.7,
           ("llama", 90, "guarded"): 1.10, ("llama", 75, "guarded"): 1.6,
           ("llama", 50, "guarded"): 3.5}


def step_of(path, memory, overlap):
    """The mean step under spillway, or None when the program failed."""
    log = path.with_suffix(".log")
    run = bench.simulate([bench.PROGRAMS / "play", 1, path], memory, SPILL="auto", OVERLAP=overlap,
                         SIM_TIME="on", SIM_COSTS="h100", SIM_LOG=log, MOVE_WAIT=MOVE_WAIT)
    if not run.ran:
        print(run.stderr, file=sys.stderr)
        return None
    return spill_log.mean(spill_log.read(log)[-1 - MEASURED:-1])  # the last mark ends the plan


def measure(table, name, plan, path):
    plans.write(plan, path)
    peak = plans.live_peak(plan)
    plain = step_of(path, 2 * peak, "safe")
    table.row(program=name, device="all", overlap="plain", step_ms=plain.ns / 1e6, plain=1.0)
    for share in SHARES:
        bounds = {beside: spill_model.floor_ns(plan, peak * share // 100, beside)
                  for beside in (False, True)}
        for overlap in WAYS:
            bound = bounds[overlap == "guarded"]
            step = step_of(path, peak * share // 100, overlap)
            if step is None:
                table.row(program=name, device=f"{share} %", overlap=overlap,
                          verdict="MISSED: failed")
                continue
            times = step.ns / plain.ns
            most = TARGETS.get((name, share, overlap))
            table.row(program=name, device=f"{share} %", overlap=overlap, step_ms=step.ns / 1e6,
                      plain=times, bound=bound / plain.ns, ratio=step.ns / bound,
                      verdict="" if most is None else "ok" if times <= most else "MISSED")


def main():
    interpreter = bench.find_torch()
    if not interpreter:
        sys.exit("PyTorch is needed: scripts/setup --torch")
    names = [name for name, _, _ in PROGRAMS]
    only = os.environ["ONLY"].split(",") if "ONLY" in os.environ else names
    if unknown := set(only) - set(names):
        sys.exit(f"ONLY={min(unknown)}: expected {', '.join(names)}")
    table = bench.Table(program=-13, device=-7, overlap=-8, step_ms=9, plain=6, bound=6, ratio=6,
                        verdict=-7)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "plan"
        for name, (script, *words), factor in PROGRAMS:
            if name not in only:
                continue
            recorded = steps.record([interpreter, bench.HERE / script, *words],
                                    path.with_name(name))
            measure(table, name, steps.repeated(recorded, STEPS, factor), path)
            if name == "gpt2":
                measure(table, "gpt2 with gap", steps.repeated(recorded, STEPS, factor, GAP_NS),
                        path)


if __name__ == "__main__":
    main()
