#!/usr/bin/env python3
"""Parameters that get their memory late: lazy modules, and a model built on the meta device."""
import torch
from torch import nn


def train(model, inputs):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("loss", loss.item())


lazy = nn.Sequential(nn.LazyLinear(512), nn.ReLU(), nn.LazyLinear(64)).cuda()
batch = torch.randn(64, 300, device="cuda")
lazy(batch)
train(lazy, batch)

with torch.device("meta"):
    empty = nn.Sequential(nn.Linear(300, 512), nn.ReLU(), nn.Linear(512, 64))
model = empty.to_empty(device="cuda")
for layer in model:
    if isinstance(layer, nn.Linear):
        layer.reset_parameters()
train(model, batch)
