#!/usr/bin/env python3
"""Prints the version of PyTorch; fails without a GPU."""
import torch

if not torch.cuda.is_available():
    raise SystemExit("torch.cuda.is_available() is false")
print(torch.__version__)
