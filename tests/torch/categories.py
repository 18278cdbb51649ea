#!/usr/bin/env python3
"""Run a training script as it is, mark the end of each optimizer step for spillway, and note what
weights, gradients and optimizer state take then, by PyTorch's own objects.

    categories.py SCRIPT [ARGUMENTS...]

The file that STEPS_OUTPUT names (%r is the rank) gets one JSON object a step. A storage counts
once, rounded up to 512 bytes as spillway counts it.
"""
import ctypes
import gc
import json
import os
import runpy
import sys
import weakref

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

UNIT = 512


def tensors_in(value):
    """The tensors in nested containers, as optimizers keep them in their state."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)


def bytes_of(tensors, known):
    """Of the storages on the current device that are not among the known ones, which they join."""
    total = 0
    for tensor in tensors:
        tensor = getattr(tensor, "_local_tensor", tensor)  # of a distributed one, this rank's part
        if tensor.layout == torch.sparse_coo:
            total += bytes_of([tensor._indices(), tensor._values()], known)
        if not tensor.is_cuda or tensor.layout != torch.strided:
            continue
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known and storage.size() > 0:
            known.add(storage.data_ptr())
            total += (storage.size() + UNIT - 1) // UNIT * UNIT
    return total


def kinds(things, kind):
    """Those whose class is of a kind. isinstance would ask objects that pretend to be another."""
    return [thing for thing in things if issubclass(type(thing), kind)]


def figures(optimizers):
    things = gc.get_objects()
    modules = kinds(things, torch.nn.Module)
    leaves = [tensor for tensor in kinds(things, torch.Tensor) if tensor.is_leaf]
    parameters = [parameter for module in modules
                  for parameter in module.parameters(recurse=False)]
    parameters += [parameter for optimizer in optimizers for group in optimizer.param_groups
                   for parameter in group["params"]]
    buffers = [buffer for module in modules for buffer in module.buffers(recurse=False)]
    known = set()
    return {"weights": bytes_of([*parameters, *buffers], known),
            "gradients": bytes_of([leaf.grad for leaf in leaves if leaf.grad is not None], known),
            "optimizer_state": bytes_of([tensor for optimizer in optimizers
                                         for tensor in tensors_in(dict(optimizer.state))], known),
            "allocated": torch.cuda.memory_allocated()}


def main(argv):
    path = os.environ["STEPS_OUTPUT"].replace("%r", os.environ.get("RANK", "0"))
    mark = ctypes.CDLL(None).spillway_mark_step
    optimizers = weakref.WeakSet()
    with open(path, "w") as output:
        def note(optimizer, *_):
            optimizers.add(optimizer)
            print(json.dumps(figures(optimizers)), file=output, flush=True)
            mark()

        register_optimizer_step_post_hook(note)
        sys.argv = argv[1:]
        runpy.run_path(argv[1], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv)
