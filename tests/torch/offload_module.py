#!/usr/bin/env python3
"""Keeps a large module in host memory and moves it to the GPU for its forward pass only."""
import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))
encoder.requires_grad_(False)
head = nn.Linear(1024, 16).cuda()
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(4):
    inputs = torch.randn(128, 1024, device="cuda")
    encoder.cuda()
    with torch.no_grad():
        features = encoder(inputs)
    encoder.cpu()
    loss = head(features).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
