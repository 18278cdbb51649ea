#!/usr/bin/env python3
"""Run a training script as it is, and note PyTorch's memory figures after each optimizer step.

    steps.py SCRIPT [ARGUMENTS...]

The file that STEPS_OUTPUT names (%r is the rank) gets one JSON object a line: the figures of a
step, and at the end those of the whole run. Fails if the device does: a kernel or copy that used
memory it must not shows at the latest then.
"""
import ctypes
import gc
import json
import os
import runpy
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


class PoolStats(ctypes.Structure):
    """struct spillway_stats of include/spillway.h."""
    _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in (
        "limit_bytes", "live_bytes", "live_peak_bytes", "committed_bytes", "committed_peak_bytes",
        "host_bytes", "allocs", "frees", "steals", "ooms")]


def pool():
    """Spillway's figures for the current device: committed and host bytes."""
    ask = getattr(ctypes.CDLL(None), "spillway_stats", None)
    stats = PoolStats(size=ctypes.sizeof(PoolStats))
    if ask is None or ask(torch.cuda.current_device(), ctypes.byref(stats)) != 0:
        return None, None
    return stats.committed_bytes, stats.host_bytes


def figures():
    stats = torch.cuda.memory_stats()
    committed, host = pool()
    return {
        "allocated": torch.cuda.memory_allocated(),
        "allocated_peak": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "reserved_peak": torch.cuda.max_memory_reserved(),
        "committed": committed,
        "host": host,
        "requested": stats["requested_bytes.all.current"],
        "requested_peak": stats["requested_bytes.all.peak"],
        "active": stats["active_bytes.all.current"],
        "tensors": stats["allocation.all.current"],
        "blocks": stats["active.all.current"],
        "blocks_peak": stats["active.all.peak"],
    }


class Layouts(ctypes.Structure):
    """struct spillway_sim_layouts of src/sim/driver/core/control.h."""
    _fields_ = [(name, ctypes.c_ulonglong) for name in (
        "unknown", "builtin", "ptx", "name", "code", "structs")]


def launches():
    """Kernels launched so far, by where the simulated driver knows their arguments from."""
    layouts = Layouts()
    ask = getattr(ctypes.CDLL("libcuda.so.1"), "spillway_sim_layouts", None)
    if ask is None:
        return {}  # a real driver
    ask(ctypes.byref(layouts))
    return {"launches": {name: getattr(layouts, name) for name, _ in Layouts._fields_}}


def main(argv):
    path = os.environ["STEPS_OUTPUT"].replace("%r", os.environ.get("RANK", "0"))
    with open(path, "w") as output:
        def note(*_, **more):
            print(json.dumps({**figures(), **more}), file=output, flush=True)

        register_optimizer_step_post_hook(note)
        sys.argv = argv[1:]
        gc.freeze()  # to look through PyTorch's modules takes a tenth of a short script's time
        runpy.run_path(argv[1], run_name="__main__")
        torch.cuda.synchronize()
        note(pid=os.getpid(), **launches())


if __name__ == "__main__":
    main(sys.argv)
