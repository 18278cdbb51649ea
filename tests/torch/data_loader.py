#!/usr/bin/env python3
"""Feeds the GPU from a DataLoader with worker processes and page-locked memory."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    data = TensorDataset(torch.randn(512, 3 * 32 * 32), torch.randint(10, (512,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, pin_memory=True)
    model = nn.Sequential(nn.Linear(3 * 32 * 32, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        for inputs, targets in loader:
            inputs = inputs.to("cuda", non_blocking=True)
            targets = targets.to("cuda", non_blocking=True)
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()
