#!/usr/bin/env python3
"""Nanoseconds that PyTorch's own record of call sites adds to an allocation, below so many frames
of Python: "name number" lines."""
import statistics
import sys
import time

import torch

BATCH, SAMPLES = 500, 40


def batch():
    begin = time.perf_counter_ns()
    for _ in range(BATCH):
        torch.empty(8192, dtype=torch.uint8, device="cuda")
    return (time.perf_counter_ns() - begin) / BATCH


def median():
    return statistics.median(sorted(batch() for _ in range(2 * SAMPLES))[:SAMPLES])


def at(depth):
    if depth > 1:
        return at(depth - 1)
    figures = {"off": median()}
    for stacks in "python", "all":
        torch.cuda.memory._record_memory_history(context="alloc", stacks=stacks, max_entries=10000)
        figures[stacks] = median()
        torch.cuda.memory._record_memory_history(enabled=None)
    return figures


def main():
    figures = at(int(sys.argv[1]) - 2)  # this function, and the program
    for stacks in "python", "all":
        print(stacks, figures[stacks] - figures["off"])


if __name__ == "__main__":
    main()
