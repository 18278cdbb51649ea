#!/usr/bin/env python3
"""Gives memory back between steps: del, the garbage collector, torch.cuda.empty_cache()."""
import gc

import torch
from torch import nn

for step in range(4):
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    loss = model(torch.randn(256 * (step + 1), 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    print("step", step, "allocated", torch.cuda.memory_allocated())
    del model, optimizer, loss
    gc.collect()
    torch.cuda.empty_cache()
    print("after", torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
    assert torch.cuda.memory_allocated() <= 128 << 20
