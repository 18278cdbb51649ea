#!/usr/bin/env python3
"""Asks for more than any device has."""
import torch

kept = torch.ones(1024, device="cuda")
torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
