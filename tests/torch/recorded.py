#!/usr/bin/env python3
"""Run a script as it is, and note by PyTorch's own record which lines of Python allocated how much.

    recorded.py SCRIPT [ARGUMENTS...]

The file that RECORDED_OUTPUT names gets a JSON list of [file, function, line, count, bytes] by the
innermost Python frame, each size rounded up to 512 bytes; frames of this file are left out.
"""
import collections
import json
import os
import runpy
import sys

import torch


def main(argv):
    torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=1 << 20)
    sys.argv = argv[1:]
    runpy.run_path(argv[1], run_name="__main__")
    lines = collections.defaultdict(lambda: [0, 0])
    for trace in torch.cuda.memory._snapshot()["device_traces"]:
        for event in trace:
            if event["action"] != "alloc":
                continue
            frame = event["frames"][0] if event["frames"] else None
            place = (frame["filename"], frame["name"], frame["line"]) if frame else ("", "", 0)
            lines[place][0] += 1
            lines[place][1] += (event["size"] + 511) // 512 * 512
    with open(os.environ["RECORDED_OUTPUT"], "w") as output:
        json.dump([[*place, *figures] for place, figures in lines.items()], output)


if __name__ == "__main__":
    main(sys.argv)
