#!/usr/bin/env python3
"""A few steps under PyTorch's profiler, with memory."""
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).cuda()
    inputs = torch.randn(64, 256, device="cuda")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 profile_memory=True) as profiled:
        for _ in range(3):
            model(inputs).sum().backward()
        torch.cuda.synchronize()
    kernels = sum(row.device_time_total > 0 for row in profiled.key_averages())
    print(f"{'ok' if kernels > 0 else 'wrong'}: the profiler sees {kernels} kinds of device work")


if __name__ == "__main__":
    main()
