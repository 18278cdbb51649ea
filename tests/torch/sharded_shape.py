#!/usr/bin/env python3
"""Allocates in the shape of sharded training (FSDP), in one process: each layer's parameters are
gathered on a side stream just before they are used and freed after it, in the forward pass and
again in the backward pass, with gradients reduced to shards; layers differ in size, and so do
batches. Prints in JSON what PyTorch reserved at most, and what it allocated at most.
"""
import json
import random

import torch
from torch import nn

LAYERS, STEPS, RANKS = 12, 6, 8
MIB = 1 << 20


def gather(shard, stream, main):
    """The whole of a layer's parameters, made on the side stream and used on the main one."""
    with torch.cuda.stream(stream):
        whole = torch.empty(shard.numel() * RANKS, device="cuda")
        whole[: shard.numel()].copy_(shard)
    main.wait_stream(stream)
    whole.record_stream(main)
    return whole


def main():
    random.seed(1)
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    shards = [torch.zeros(random.randint(1, 8) * MIB // 4, device="cuda") for _ in range(LAYERS)]
    states = [torch.zeros_like(shard) for shard in shards for _ in range(2)]
    for _ in range(STEPS):
        batch = random.randint(4, 32)
        kept = []
        for shard in shards:
            whole = gather(shard, side, current)
            kept.append(torch.zeros(batch * 96 * 1024, device="cuda"))
            nn.functional.relu(kept[-1], inplace=False)
            del whole
        for shard in reversed(shards):
            whole = gather(shard, side, current)
            gradient = torch.zeros_like(whole)
            side.wait_stream(current)
            with torch.cuda.stream(side):
                reduced = torch.empty_like(shard)
                reduced.copy_(gradient[: shard.numel()])
            gradient.record_stream(side)
            current.wait_stream(side)
            shard.sub_(reduced)
            del whole, gradient, reduced, kept[-1]
    torch.cuda.synchronize()
    print(json.dumps({"reserved": torch.cuda.max_memory_reserved(),
                      "allocated": torch.cuda.max_memory_allocated(), "states": len(states)}))


if __name__ == "__main__":
    main()
