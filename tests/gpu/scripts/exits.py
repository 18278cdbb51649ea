#!/usr/bin/env python3
"""Ends in the way its argument names, with device memory held and work in flight."""
import os
import signal
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    way = sys.argv[1]
    held = torch.randn(1 << 20, device="cuda")
    if way == "workers":
        data = TensorDataset(torch.randn(64, 8))
        for _ in range(2):
            for (batch,) in DataLoader(data, batch_size=8, num_workers=2):
                held[:64] += batch.to("cuda").flatten()
        torch.cuda.synchronize()
        return
    for _ in range(100):
        held = held * 1.0001
    if way == "_exit":
        os._exit(7)
    if way == "sigterm":
        os.kill(os.getpid(), signal.SIGTERM)
    raise RuntimeError(way)


if __name__ == "__main__":
    main()
