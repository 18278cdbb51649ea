"""Recorded steps: the last step of a training script, as a plan that repeats it.

The script runs once with the real PyTorch on the simulated GPU, without spillway, at the costs of
an H100. What a step leaves behind takes the place of what it freed of the step before, so that the
plan can go on for any number of steps.
"""
import collections
import itertools

import bench
import plans


def record(command, path):
    """Runs the script and returns its plan. `path` is a file for the driver's log."""
    run = bench.simulate(command, bench.LARGE, ["--no-pool"],
                         {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}, SIM_TIME="on",
                         SIM_COSTS="h100", SIM_LOG=path)
    if not run.ran:
        raise SystemExit(run.stderr)
    return plans.of_log(path)


def scaled(acts, factor):
    """With kernels that take `factor` times as long, and that are cut where `play` needs it."""
    for act in acts:
        if act[0] != "u":
            yield act
            continue
        uses = {}
        for buffer, written in act[2]:
            uses[buffer] = uses.get(buffer, False) or written
        time = int(act[1] * factor)
        yield from plans.kernels(time, list(uses.items())) if uses else [("u", time, [])]


def heirs(sizes, step):
    """{buffer from before the step: buffer of the same size that the step leaves in its place}, and
    the buffers that it leaves besides."""
    born, freed = {}, []
    for act in step:
        if act[0] == "a":
            born[act[1]] = act[2]
        elif act[0] == "f" and born.pop(act[1], None) is None:
            freed.append(act[1])
    left = collections.defaultdict(list)
    for buffer, size in born.items():
        left[size].append(buffer)
    found = {old: left[sizes[old]].pop(0) for old in freed if left[sizes[old]]}
    return found, [buffer for rest in left.values() for buffer in rest]


def sizes_after(acts):
    sizes = {}
    for act in acts:
        if act[0] == "a":
            sizes[act[1]] = act[2]
        elif act[0] == "f":
            sizes.pop(act[1], None)
    return sizes


def repeated(plan, count, factor=1, gap_ns=0):
    """What came before the plan's last step, and that step so many times. Kernels take `factor`
    times as long, and a step begins with a kernel of `gap_ns` that uses no memory."""
    marks = [place for place, act in enumerate(plan) if act[0] == "s"]
    head = list(scaled(plan[:marks[-2]], factor))
    step = list(scaled(plan[marks[-2] + 1:marks[-1]], factor))
    found, extra = heirs(sizes_after(head), step)
    numbers = itertools.count(1 + max(act[1] for act in plan if act[0] == "a"))
    result, names = head, {}
    for _ in range(count):
        result += [("s",)] + ([("u", gap_ns, [])] if gap_ns > 0 else [])
        names.update({act[1]: next(numbers) for act in step if act[0] == "a"})
        result += [renamed(act, names) for act in step]
        result += [("f", names[buffer]) for buffer in extra]
        names.update({old: names[heir] for old, heir in found.items()})
    return result + [("s",)]


def renamed(act, names):
    kind, first, *rest = act
    if kind == "u":
        return (kind, first, [(names.get(buffer, buffer), written) for buffer, written in rest[0]])
    return (kind, names.get(first, first), *rest)
