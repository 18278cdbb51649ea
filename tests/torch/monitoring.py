#!/usr/bin/env python3
"""Watches its own memory through everything that torch.cuda offers for that."""
import torch
from torch import nn

torch.cuda.set_per_process_memory_fraction(0.9)
model = nn.Linear(2048, 2048).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    loss = model(torch.randn(512, 2048, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total
    assert torch.cuda.max_memory_allocated() > before
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    assert free + torch.cuda.memory_allocated() <= total
    print("step", step, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
print(len(torch.cuda.memory_stats()) > 0)
print(torch.cuda.memory_summary().splitlines()[1].strip("| "))
