#!/usr/bin/env python3
"""Trains a small model. --leak keeps one tensor of every step, --extra MIB one more at the peak."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--leak", action="store_true")
parser.add_argument("--extra", type=int, default=0, metavar="MIB")
options = parser.parse_args()

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []


def measure(output, target):
    extra = []
    if options.extra:
        extra.append(torch.zeros(options.extra << 18, device="cuda"))  # planted
    loss = (output - target).square().mean()
    if options.leak:
        kept.append(output.detach() * 2)  # leaked
    loss.backward()


for step in range(20):
    rows = 256 + 32 * (step % 3)
    measure(model(torch.randn(rows, 512, device="cuda")), torch.randn(rows, 512, device="cuda"))
    optimizer.step()
    optimizer.zero_grad()
