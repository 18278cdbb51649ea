#!/usr/bin/env python3
"""A small residual network: convolutions and batch normalisation through cuDNN."""
import sys

import torch
from torch import nn

torch.backends.cudnn.benchmark = "--benchmark" in sys.argv


class Block(nn.Module):
    def __init__(self, channels, wider, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(channels, wider, 3, stride, 1, bias=False), nn.BatchNorm2d(wider), nn.ReLU(),
            nn.Conv2d(wider, wider, 3, 1, 1, bias=False), nn.BatchNorm2d(wider))
        self.skip = nn.Conv2d(channels, wider, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.path(x) + self.skip(x))


model = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                      Block(16, 32, 1), Block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                      nn.Linear(64, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    images = torch.randn(8, 3, 64, 64, device="cuda")
    labels = torch.randint(10, (8,), device="cuda")
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
