#!/usr/bin/env python3
"""Allocates so many GiB at its start, as some libraries do to fill PyTorch's cache, and frees them;
then takes two training steps.

    warm_up.py GIB
"""
import sys

import torch
from torch import nn


def main():
    warm = torch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device="cuda")
    del warm
    model = nn.Sequential(nn.Linear(500, 700), nn.GELU(), nn.Linear(700, 500)).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        model(torch.ones(16, 500, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
