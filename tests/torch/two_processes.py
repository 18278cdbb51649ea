#!/usr/bin/env python3
"""Data-parallel training with gloo; each process that torchrun starts has a device of its own."""
import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


def main():
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
    model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("rank", rank, "step", step, "loss", loss.item(), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
