#!/usr/bin/env python3
"""Keeps the activations of the forward pass in page-locked host memory until the backward one."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.Tanh()) for _ in range(6)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = model(torch.randn(512, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
