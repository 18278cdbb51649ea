#!/usr/bin/env python3
"""Which of the small results that programs read from the GPU are those of a real run.

usage: scripts/bench reads [--json] [PROGRAM...]

Every script of the torch corpus (tests/torch/corpus.py), and programs as others write them
(reads/), run on the simulated GPU with each operator on the CPU beside it (tests/torch/beside.py).
A read is known when the simulator says that what it reads was computed; true when what the program
got is what the CPU has there; false when it is known but not true, of which there must be none. Of
a read inside an operator that shows in no size or value the program gets, `true` cannot tell.
`compared`: small contents that operators left and that are known; `differ`: those of them that are
not the CPU's.
"""
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

import bench

OTHERS = ("trainer", "generate", "accelerated", "lora", "vision", "diffusion", "tuning")
TORCH = bench.HERE.parent / "torch"
SECONDS = 900
AT_ONCE = 4  # nothing is timed
sys.path.insert(0, str(TORCH))
from corpus import SCRIPTS  # pylint: disable=wrong-import-position


def programs():
    """{name: (command, processes)} of those that are asked for, or of all"""
    wanted = [word for word in sys.argv[2:] if not word.startswith("--")]
    found = {name: ([TORCH / row.command[0], *row.command[1:]], row.processes)
             for name, row in SCRIPTS.items()}
    found.update({f"others: {name}": ([bench.HERE / "reads" / f"{name}.py"], 1)
                  for name in OTHERS})
    return {name: program for name, program in found.items()
            if not wanted or name.split()[-1] in wanted}


def run(interpreter, command, processes):
    """The counts of all processes together; None if the program failed."""
    start = [interpreter]
    if processes > 1:
        start += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes]
    with tempfile.TemporaryDirectory() as folder:
        words = [bench.COMMAND, "sim", "--devices", processes, "--spin", "0", "--", *start,
                 TORCH / "beside.py", f"{folder}/%r", "--every", *command]
        settings = {**bench.clean_environment(SUMMARY="off"), "OMP_NUM_THREADS": "1",
                    "HF_HUB_OFFLINE": "1"}
        try:
            done = subprocess.run([str(word) for word in words], env=settings, timeout=SECONDS,
                                  capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            return None
        counts = collections.Counter()
        for path in pathlib.Path(folder).iterdir():
            report = json.loads(path.read_text())
            counts.update(report["counts"])
            for fault in report["faults"]:
                print(fault, file=sys.stderr)
    return counts


def share(part, whole):
    return 100 * part / whole if whole else None


def row_of(name, counts):
    reads, inside = counts["reads"], counts["inside"]
    return {"program": name, "reads": reads, "known": counts["known"],
            "known_share": share(counts["known"], reads),
            "true_share": share(counts["true"], reads - inside), "false": counts["false"],
            "inside": inside, "compared": counts["compared"], "differ": counts["wrong"],
            "verdict": "ok" if counts["false"] + counts["wrong"] == 0 else "MISSED"}


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    table = bench.Table(program=-22, reads=6, known=6, known_share=12, true_share=11, false=6,
                        inside=7, compared=9, differ=7, verdict=-12)
    groups = {"corpus": collections.Counter(), "others": collections.Counter()}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {name: pool.submit(run, interpreter, *program)
                for name, program in programs().items()}
        for name, done in runs.items():
            counts = done.result()
            if counts is None:
                table.row(program=name, verdict="does not run")
                continue
            groups["others" if name.startswith("others") else "corpus"].update(counts)
            table.row(**row_of(name, counts))
    for name, counts in groups.items():
        table.row(**row_of(f"all of {name}", counts))


if __name__ == "__main__":
    main()
