#!/usr/bin/env python3
"""Run a training script as it is, and note PyTorch's memory figures after each optimizer step.

    steps.py OUTPUT SCRIPT [ARGUMENTS...]

OUTPUT gets one JSON object a line: the figures of a step, and at the end those of the whole run.
"""
import json
import runpy
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


def figures():
    stats = torch.cuda.memory_stats()
    return {
        "allocated": torch.cuda.memory_allocated(),
        "allocated_peak": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "reserved_peak": torch.cuda.max_memory_reserved(),
        # These exist on PyTorch's own allocator only.
        "requested": stats.get("requested_bytes.all.current"),
        "requested_peak": stats.get("requested_bytes.all.peak"),
        "blocks": stats.get("active.all.current"),
        "blocks_peak": stats.get("active.all.peak"),
    }


def main(argv):
    with open(argv[1], "w") as output:
        def note(*_):
            print(json.dumps(figures()), file=output, flush=True)

        register_optimizer_step_post_hook(note)
        sys.argv = argv[2:]
        runpy.run_path(argv[2], run_name="__main__")
        note()


if __name__ == "__main__":
    main(sys.argv)
