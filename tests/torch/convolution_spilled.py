#!/usr/bin/env python3
"""Lets cuDNN choose among its algorithms when more is allocated than the device has."""
import torch
from torch import nn

torch.backends.cudnn.benchmark = True
PIECE = 16 << 20
total = torch.cuda.mem_get_info()[1]
kept = [torch.full((PIECE // 4,), float(i), device="cuda") for i in range(total * 5 // 4 // PIECE)]
assert torch.cuda.memory_allocated() > total
model = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.ReLU(), nn.Conv2d(16, 32, 3)).cuda()
for size in (64, 48):
    model(torch.randn(8, 3, size, size, device="cuda")).square().mean().backward()
    free, now = torch.cuda.mem_get_info()
    assert free + torch.cuda.memory_allocated() <= now, (free, now, torch.cuda.memory_allocated())
torch.cuda.synchronize()
print("allocated", torch.cuda.memory_allocated(), "pieces", len(kept))
