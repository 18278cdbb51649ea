#!/usr/bin/env python3
"""Adds up the gradients of several small batches before each optimizer step."""
import torch
from torch import nn

PARTS = 4

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
loss_function = nn.CrossEntropyLoss()
for step in range(4):
    total = 0.0
    for _ in range(PARTS):
        inputs = torch.randn(64, 256, device="cuda")
        targets = torch.randint(10, (64,), device="cuda")
        loss = loss_function(model(inputs), targets) / PARTS
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("step", step, "loss", total)
