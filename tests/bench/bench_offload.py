#!/usr/bin/env python3
"""What a step takes when memory is kept on the host in the way of a library or of spillway, at
equal device memory.

usage: scripts/bench offload [--json]

Time is simulated; a step is the mean of the later ones. For each workload and rival the first row
is the rival with ample memory, without spillway; its peak of allocated memory, with the share that
a driver needs besides, is what spillway may then use:

plenty          everything fits: no rival, the step that the others are a multiple of
save_on_cpu     torch.autograd.graph.save_on_cpu: activations go to page-locked memory
checkpointing   torch.utils.checkpoint: activations are computed again
cpu_offload     accelerate's: weights come to the device for each layer
default         spillway without rules
advice          the policy that `spillway advise` writes; `default` where it says that is best
hand-written    a policy that comes with spillway: activations-to-host-first or
                inference-weights-on-host
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import bench
import spill_log

STEPS, MEASURED = 6, 3
SHAPE = ["--bf16", "--batch", "4", "--steps", STEPS]
POLICIES = bench.HERE.parents[1] / "policies"
MOVE_WAIT = 5000  # ms, of the clock on the wall: it says nothing of simulated time
ROOM = 32 << 20   # code and local memory, which PyTorch does not count
NATIVE = {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}


class Workload:
    def __init__(self, name, script, rivals, policy):
        """`rivals`: flags of the script, by name."""
        self.name, self.script, self.rivals, self.policy = name, script, rivals, policy


WORKLOADS = [
    Workload("training", "torch_spill.py",
             {"save_on_cpu": ["--save-on-cpu"], "checkpointing": ["--checkpointing"]},
             "activations-to-host-first.json"),
    Workload("inference", "torch_infer.py", {"cpu_offload": ["--offload"]},
             "inference-weights-on-host.json"),
]


class Bench:
    def __init__(self, interpreter, folder):
        self.interpreter, self.folder = interpreter, pathlib.Path(folder)
        self.table = bench.Table(workload=-9, memory_MiB=10, who=-13, step_ms=9, times=7,
                                 in_MiB=8, out_MiB=8, link_MiB=8, verdict=-7)

    def command(self, workload, flags=()):
        return [self.interpreter, bench.HERE / workload.script, *SHAPE, *flags]

    def run(self, workload, flags, memory, spillway, **options):
        """(the mean step, the peak of allocated memory in MiB); (None, None) if it failed."""
        log = self.folder / "log"
        log.unlink(missing_ok=True)  # the driver appends
        run = bench.simulate(self.command(workload, flags), memory,
                             [] if spillway else ["--no-pool"], {} if spillway else NATIVE,
                             SIM_TIME="on", SIM_LOG=log, MOVE_WAIT=MOVE_WAIT, **options)
        if not run.ran:
            print(run.stderr, file=sys.stderr)
            return None, None
        peak = re.search(r"peak memory: ([\d.]+) MiB", run.stdout)
        return spill_log.mean(spill_log.read(log)[-MEASURED:]), float(peak.group(1))

    def advice(self, workload, memory):
        """The policy that the command writes; None: the default is at least as good."""
        policy, answer = self.folder / "advice.json", self.folder / "answer.json"
        policy.unlink(missing_ok=True)
        subprocess.run([bench.COMMAND, "advise", "--budget", str(memory), "--json", answer,
                        "--output", policy, "--", *map(str, self.command(workload))],
                       env=bench.clean_environment(), stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, check=False)
        return policy if answer.exists() and json.loads(answer.read_text())["written"] else None

    def print_row(self, workload, memory, who, step, plenty, rival=None):
        verdict = "" if rival is None or step is None else \
            "ahead" if step.ns < rival.ns else "behind"
        if step is None:
            self.table.row(workload=workload.name, memory_MiB=memory / bench.MIB, who=who,
                           verdict="MISSED: failed")
            return
        self.table.row(workload=workload.name, memory_MiB=memory / bench.MIB, who=who,
                       step_ms=step.ns / 1e6, times=step.ns / plenty.ns,
                       in_MiB=step.in_bytes / bench.MIB, out_MiB=step.out_bytes / bench.MIB,
                       link_MiB=step.link_bytes / bench.MIB, verdict=verdict)

    def compare(self, workload, name, flags, plenty):
        rival, peak = self.run(workload, flags, bench.LARGE, spillway=False)
        if rival is None:
            self.table.row(workload=workload.name, who=name, verdict="MISSED: failed")
            return
        memory = int(peak * bench.MIB) + ROOM
        self.print_row(workload, memory, name, rival, plenty)
        advice = self.advice(workload, memory)
        for who, policy in (("default", None), ("advice", advice),
                            ("hand-written", POLICIES / workload.policy)):
            if who == "advice" and policy is None:
                continue
            options = {} if policy is None else {"POLICY": policy}
            step, _ = self.run(workload, [], memory, spillway=True, SPILL="auto", **options)
            self.print_row(workload, memory, who, step, plenty, rival)

    def measure(self, workload):
        plenty, peak = self.run(workload, [], bench.LARGE, spillway=False)
        if plenty is None:
            self.table.row(workload=workload.name, who="plenty", verdict="MISSED: failed")
            return
        self.print_row(workload, int(peak * bench.MIB) + ROOM, "plenty", plenty, plenty)
        for name, flags in workload.rivals.items():
            self.compare(workload, name, flags, plenty)


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Bench(interpreter, folder)
        for workload in WORKLOADS:
            comparison.measure(workload)


if __name__ == "__main__":
    main()
