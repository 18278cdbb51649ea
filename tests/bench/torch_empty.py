#!/usr/bin/env python3
"""Nanoseconds of `torch.empty` and the free of its tensor: "name number" lines."""
import statistics
import sys
import time

import torch

SIZES = [512, 8192, 70000, 1 << 20, 3 << 20, 12 << 20]
BATCH, SAMPLES = 600, 200


def batch():
    begin = time.perf_counter_ns()
    for i in range(BATCH):
        torch.empty(SIZES[i % len(SIZES)], dtype=torch.uint8, device="cuda")
    return (time.perf_counter_ns() - begin) / BATCH


def main():
    live = [torch.empty(8192, dtype=torch.uint8, device="cuda") for _ in range(int(sys.argv[1]))]
    samples = sorted([batch() for _ in range(2 * SAMPLES)][SAMPLES:])
    print("pair median", statistics.median(samples))
    print("pair p99", samples[len(samples) * 99 // 100])
    del live


if __name__ == "__main__":
    main()
