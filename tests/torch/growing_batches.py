#!/usr/bin/env python3
"""Trains on batches that grow from step to step, and never waits for the device before the end:
what was freed is still in use, and too small for what comes next."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 2048), nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = None
for step in range(16):
    loss = model(torch.ones(512 * (step + 1), 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("loss", loss.item())
