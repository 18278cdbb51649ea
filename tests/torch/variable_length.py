#!/usr/bin/env python3
"""Batches whose sequences are of a different length in each step, and no step that waits for the
device: the losses are read at the end."""
import torch
from torch import nn

layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
model = nn.TransformerEncoder(layer, 2).cuda()
optimizer = torch.optim.AdamW(model.parameters())
chance = torch.Generator().manual_seed(1)
losses = []
for step in range(8):
    length = int(torch.randint(16, 257, (), generator=chance))
    loss = model(torch.randn(8, length, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.detach())
print("losses", [loss.item() for loss in losses])
