#!/usr/bin/env python3
"""A forward pass without gradients through a model that was moved to the device. Prints the bytes
of its large weights, what takes memory of the host when three quarters of each are there, in whole
granules of which the last is always among them, and how much of that is in the weights."""
import torch
from torch import nn

GRANULE = 2 << 20


def main():
    model = nn.Sequential(nn.Linear(2048, 4096), nn.ReLU(), nn.Linear(4096, 2048),
                          nn.Linear(2048, 1500), nn.Linear(1500, 10))
    model.to("cuda")
    with torch.no_grad():
        model(torch.ones(8, 2048, device="cuda"))
    torch.cuda.synchronize()
    sizes = [-(-weight.nbytes // 512) * 512 for weight in model.parameters()
             if weight.nbytes >= 1 << 20]
    host = sum((size * 3 // 4 + GRANULE // 2) // GRANULE * GRANULE for size in sizes)
    print(sum(sizes), host, host - sum(-size % GRANULE for size in sizes))


if __name__ == "__main__":
    main()
