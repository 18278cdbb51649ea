#!/usr/bin/env python3
"""The loop of pathology.c on PyTorch's own allocator: prints its peaks in bytes."""
import torch

MIB = 1 << 20


def tensor(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


kept = []
for _ in range(100):
    large, half = tensor(91), tensor(45.5)
    kept.append(tensor(2))
    del large, half
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
