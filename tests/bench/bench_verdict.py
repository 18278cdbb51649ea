#!/usr/bin/env python3
"""How long a verdict takes, and how much memory of the host.

usage: scripts/bench verdict [--json]

Time and the greatest resident memory of one process are those that wait4 tells of `spillway sim`
and its children. The time of the processors, user and system together, hardly depends on other
work of the machine; the time that passes does, and the row says how busy the machine was.
`imports` is the same interpreter with the script's imports alone, without a simulated GPU.
"""
import dataclasses
import os
import statistics
import subprocess
import sys
import time

import bench

REPEATS = 3
WORKLOADS = {  # title: (command behind the interpreter, its imports, most seconds, most MiB)
    "Qwen3-4B, three steps": (
        ["train_billions.py"], "from transformers import Qwen3ForCausalLM", 15, 1024),
    "Llama 70B, one rank of 64, two steps": (
        ["train_sharded.py", "--steps", "2"], "from torch.distributed import fsdp", 60, 1024),
}


@dataclasses.dataclass
class Cost:
    """What a command cost the machine."""
    elapsed: float
    processor: float
    mib: float


def cost(command):
    env = bench.clean_environment(SUMMARY="off")
    env["OMP_NUM_THREADS"] = "1"
    begin = time.perf_counter()
    with subprocess.Popen([str(word) for word in command], env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as child:
        said = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    elapsed = time.perf_counter() - begin
    if child.returncode != 0:
        sys.exit(f"{command[-1]} ended with {child.returncode}:\n{said}")
    return Cost(elapsed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(command):
    costs = [cost(command) for _ in range(REPEATS)]
    return Cost(*(statistics.median(values) for values in
                  zip(*(dataclasses.astuple(one) for one in costs))))


def ways(interpreter, words, imports):
    """(name, command) of what is measured for a workload."""
    script = [interpreter, bench.HERE / words[0], *words[1:]]
    yield "imports", [interpreter, "-c", imports]
    yield "bare", [bench.COMMAND, "sim", "--no-pool", "--", *script]
    yield "under the pool", [bench.COMMAND, "sim", "--", *script]


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    table = bench.Table(workload=-38, run=-15, processor_s=11, elapsed_s=9, load=5, host_MiB=8,
                        most_s=6, verdict=-7)
    for title, (words, imports, seconds, mib) in WORKLOADS.items():
        for name, command in ways(interpreter, words, imports):
            found = median(command)
            good = found.processor <= seconds and found.mib <= mib
            table.row(workload=title, run=name, processor_s=found.processor,
                      elapsed_s=found.elapsed, load=os.getloadavg()[0], host_MiB=round(found.mib),
                      most_s=None if name == "imports" else seconds,
                      verdict="" if name == "imports" else "ok" if good else "MISSED")


if __name__ == "__main__":
    main()
