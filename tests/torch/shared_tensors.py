#!/usr/bin/env python3
"""Tensors of a GPU go to another process and back by torch.multiprocessing: shared_tensors.py
[EXCHANGES [METHOD]].

The other process checks each tensor's content and overwrites it, and this one checks that. Prints
what is left of the memory at the end."""
import os
import sys

import torch
import torch.multiprocessing

SHAPES = ((7,), (1000,), (512, 1024), (3, 1 << 20))


def numbered(shape, number):
    return torch.full(shape, float(number))


def consume(offers, answers):
    for number, tensor in iter(offers.get, None):
        good = torch.equal(tensor.cpu(), numbered(tensor.shape, number))
        tensor.copy_(numbered(tensor.shape, -number))
        torch.cuda.synchronize()
        del tensor
        answers.put(good)


def main():
    exchanges = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    context = torch.multiprocessing.get_context(sys.argv[2] if len(sys.argv) > 2 else "spawn")
    kept = torch.full((4 << 20,), 5.0).cuda()
    os.environ.pop("SPILLWAY_STATS", None)  # this process's alone
    offers, answers = context.SimpleQueue(), context.SimpleQueue()
    consumer = context.Process(target=consume, args=(offers, answers))
    consumer.start()
    for number in range(1, exchanges + 1):
        shape = SHAPES[number % len(SHAPES)]
        whole = numbered((2, *shape), number).cuda()
        tensor = whole[number % 2]  # may begin inside a block
        offers.put((number, tensor))
        assert answers.get(), f"exchange {number}: the other process read something else"
        assert torch.equal(tensor.cpu(), numbered(shape, -number)), f"exchange {number}"
        assert torch.equal(whole[1 - number % 2].cpu(), numbered(shape, number))
        del tensor, whole
    offers.put(None)
    consumer.join()
    assert consumer.exitcode == 0, consumer.exitcode
    assert torch.equal(kept.cpu(), torch.full((4 << 20,), 5.0))
    del kept
    torch.cuda.ipc_collect()
    torch.cuda.empty_cache()
    print(exchanges, "exchanges, left:", torch.cuda.memory_allocated(),
          torch.cuda.memory_reserved(), flush=True)


if __name__ == "__main__":
    main()
