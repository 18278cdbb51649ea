#!/usr/bin/env python3
"""Holds so many tensors of so many MiB at once.

    blocks.py COUNT MIB
"""
import sys

import torch


def main():
    count, mib = map(int, sys.argv[1:])
    held = [torch.empty(mib << 20, dtype=torch.uint8, device="cuda") for _ in range(count)]
    torch.cuda.synchronize()
    print(sum(tensor.nbytes for tensor in held))


if __name__ == "__main__":
    main()
