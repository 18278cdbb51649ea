#!/usr/bin/env python3
"""Recomputes activations in the backward pass: torch.utils.checkpoint in its three spellings."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

WIDTH = 512


class Deep(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
            for _ in range(6))

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=self.reentrant)
        return x


def train(model, forward):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        x = torch.randn(256, WIDTH, device="cuda", requires_grad=True)
        loss = forward(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item())


for choice in (False, True):
    deep = Deep(choice).cuda()
    train(deep, deep)
sequence = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(8)])
sequence.cuda()
train(sequence, lambda x: checkpoint_sequential(sequence, 4, x, use_reentrant=False))
