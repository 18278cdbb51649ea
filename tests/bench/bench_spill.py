#!/usr/bin/env python3
"""The time of a step when part of its memory is on the host, beside models and bounds.

Devices hold 95, 90, 80 and 50 % of the live peak; time is simulated; measured from the fourth step
on. Rows:

tier     spillway with its defaults, SPILLWAY_OVERLAP=safe
guarded  SPILLWAY_OVERLAP=guarded
marked   the program calls spillway_mark_step; only for `shapes`, whose steps differ in their sizes.
         There `tier` is the same program without marks, and neither is judged. Nor is
         `evaluation`: training with an evaluation after every five steps.
belady   model of demand paging that evicts the buffer that is used last
lru      model of demand paging that evicts the least recently used buffer
static   model that leaves on the host what does not fit at first
bound    the longer of the kernels' time and the transfers of `belady` in one direction, if all
         overlaps
floor    a lower limit for anybody who migrates what kernels use; above the target, the verdict is
         "out of reach"

The steps of spillway are timed from the driver's log of launches and copies. The models play the
same plan at the same costs (spill_model.py).
"""
import math
import pathlib
import sys
import tempfile

import bench
import plans
import spill_log
import spill_model
import traces

STEPS, FROM = 7, 4
MEASURED = STEPS - FROM + 1
TORCH = ["--bf16", "--batch", "4"]  # of gpt2_like.py
SHARES = (5, 10, 20, 50)  # percent of the live peak that does not fit
MOST = {"pangu_2.6B": 1.10, "S_1": 1.10, "resnet50": 1.25}  # times the bound
MUST = 10  # percent: beyond, and for other programs, the target is LRU
MOVE_WAIT = 5000  # ms, of the clock on the wall: it says nothing of simulated time
# SPILLWAY_OVERLAP, and further arguments of the program
WAYS = {"tier": ("safe",), "guarded": ("guarded",)}
SHAPES_WAYS = {"tier": ("safe",), "marked": ("safe", "marked")}
SHAPES_STEPS = 12
EVALUATION_ROUNDS = 6


class Workload:
    """Something that takes steps: what the models work on, and a command for spillway."""

    def __init__(self, name, plan, command, ways=WAYS, judged=True, measured=MEASURED):
        """`measured`: how many steps at the end are."""
        self.name, self.plan, self.command, self.ways = name, plan, command, ways
        self.judged, self.measured = judged, measured

    def model(self, who, capacity):
        """The mean step of a model."""
        steps = getattr(spill_model, who)(self.plan, capacity)[1:-1]
        return spill_model.mean(steps[-self.measured:])

    def tier(self, memory, overlap, *arguments):
        """The mean step under spillway, or None when the program failed."""
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            run = bench.simulate([*self.command, *arguments], memory, SPILL="auto", OVERLAP=overlap,
                                 SIM_TIME="on", SIM_LOG=log, MOVE_WAIT=MOVE_WAIT)
            if not run.ran:
                print(run.stderr, file=sys.stderr)
                return None
            return spill_log.mean(spill_log.read(log)[-self.measured:])


def of_trace(name, folder):
    """A step is like the other, as nothing lives longer: the models take one."""
    plan = plans.of_trace(traces.path(name))
    path = pathlib.Path(folder) / name
    plans.write(plan, path)
    return Workload(name, [("s",), *plan, ("s",)], [bench.PROGRAMS / "play", STEPS, path])


def of_shapes(folder):
    """No step has the sizes of another: without marks, the steps cannot be detected."""
    plan = plans.of_shapes(SHAPES_STEPS)
    path = pathlib.Path(folder) / "shapes"
    plans.write(plan[1:-1], path)
    return Workload("shapes", plan, [bench.PROGRAMS / "play", 1, path], SHAPES_WAYS,
                    judged=False)


def of_evaluation(folder):
    """The figures are the mean of the last round of training and evaluation."""
    plan = plans.of_evaluation(EVALUATION_ROUNDS)
    path = pathlib.Path(folder) / "evaluation"
    plans.write(plan[1:-1], path)
    return Workload("evaluation", plan, [bench.PROGRAMS / "play", 1, path], judged=False,
                    measured=plans.TRAINED + 1)


def of_torch(interpreter, folder):
    """The plan is that of a run without spillway where everything fits."""
    command = [interpreter, bench.HERE / "torch_spill.py", *TORCH, "--steps", STEPS]
    log = pathlib.Path(folder) / "log"
    run = bench.simulate(command, bench.LARGE, ["--no-pool"],
                         {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}, SIM_TIME="on",
                         SIM_LOG=log)
    if not run.ran:
        sys.exit(run.stderr)
    return Workload("gpt2_like", plans.of_log(log), command)


def verdict(name, share, ns, bound_ns, floor_ns, lru_ns):
    most = MOST.get(name, math.inf) if share <= MUST else math.inf
    within = ns <= most * bound_ns
    if ns > lru_ns or not within and floor_ns <= most * bound_ns:
        return "MISSED"
    return "ok" if within else "out of reach"


def mib(count):
    return count / bench.MIB


def ms(ns):
    return ns / 1e6


def print_models(table, where, models, bound_ns):
    for who, step in models.items():
        table.row(**where, who=who, moves=step.moves, in_MiB=mib(step.in_bytes),
                  out_MiB=mib(step.out_bytes), link_MiB=mib(step.link_bytes), calls=step.calls,
                  step_ms=ms(step.ns), bound=step.ns / bound_ns)


def print_tier(table, where, who, step, bound_ns, judged):
    table.row(**where, who=who, moves=step.copies, in_MiB=mib(step.in_bytes),
              out_MiB=mib(step.out_bytes), link_MiB=mib(step.link_bytes), calls=step.calls,
              waits=step.waits, step_ms=ms(step.ns), bound=step.ns / bound_ns,
              link_ms=ms(step.link_ns), idle_ms=ms(step.idle_ns), calls_ms=ms(step.calls_ns),
              waits_ms=ms(step.waits_ns), verdict=judged)


def measure(table, workload, share):
    capacity = plans.live_peak(workload.plan) * (100 - share) // 100
    models = {who: workload.model(who, capacity) for who in ("belady", "lru", "static")}
    bound_ns = models["belady"].bound_ns()
    where = {"trace": workload.name, "spilled": f"{share} %"}
    floor_ns = max(bound_ns, spill_model.floor_ns(workload.plan, capacity))
    table.row(**where, who="bound", in_MiB=mib(models["belady"].in_bytes),
              out_MiB=mib(models["belady"].out_bytes), step_ms=ms(bound_ns), bound=1.0)
    table.row(**where, who="floor", step_ms=ms(floor_ns), bound=floor_ns / bound_ns)
    print_models(table, where, models, bound_ns)
    for who, way in workload.ways.items():
        step = workload.tier(capacity, *way)
        if step is None:
            table.row(**where, who=who, verdict="MISSED: failed")
        else:
            print_tier(table, where, who, step, bound_ns,
                       verdict(workload.name, share, step.ns, bound_ns, floor_ns,
                               models["lru"].ns)
                       if workload.judged else "")


def main():
    interpreter = bench.find_torch()
    table = bench.Table(trace=-11, spilled=-7, who=-9, moves=8, in_MiB=10, out_MiB=10,
                        link_MiB=10, calls=9, waits=7, step_ms=9, bound=7, link_ms=8, idle_ms=8,
                        calls_ms=8, waits_ms=8, verdict=-7)
    with tempfile.TemporaryDirectory() as folder:
        workloads = [of_shapes(folder), of_evaluation(folder),
                     *(of_trace(name, folder) for name in traces.NAMES)]
        if interpreter:
            workloads.append(of_torch(interpreter, folder))
        for workload in workloads:
            for share in SHARES:
                measure(table, workload, share)


if __name__ == "__main__":
    main()
