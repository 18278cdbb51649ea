#!/usr/bin/env python3
"""torch.compile with trees of CUDA graphs."""
import torch
from torch import nn

torch.set_float32_matmul_precision("high")
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).cuda()
compiled = torch.compile(model, mode="reduce-overhead")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    torch.compiler.cudagraph_mark_step_begin()
    loss = compiled(torch.randn(64, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
