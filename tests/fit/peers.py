#!/usr/bin/env python3
"""PyTorch's MemTracker on rows of the benchmark `fit`: two steps on fake tensors.

    peers.py '[{"model": "VGG16", "optimizer": "Adam", "batch": 100}]'

Prints the peak of each row in bytes, or null where it fails. It runs under `spillway sim`, since
fake tensors of a GPU need one. Texts have no mask: what reads a value of one cannot be tracked.
"""
import json
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

import convnets
import texts
import train


def step(row, model, criterion):
    if criterion:
        inputs = torch.zeros(row["batch"], 3, 86, 86, device="cuda")
        labels = torch.zeros(row["batch"], dtype=torch.long, device="cuda")
        criterion(model(inputs), labels).backward()
        return
    tokens = torch.zeros(row["batch"], 128, dtype=torch.long, device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()


def peak(row):
    net = convnets.NETS.get(row["model"])
    with FakeTensorMode():
        with torch.device("cuda"):
            model = (net() if net else texts.build(row["model"])).train()
        optimizer = train.make_optimizer(row, model)
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            for _ in range(2):
                optimizer.zero_grad()
                step(row, model, torch.nn.CrossEntropyLoss() if net else None)
                optimizer.step()
                tracker.reset_mod_stats()
        snapshot = tracker.get_tracker_snapshot("peak")
    return max(of_device["Total"] for of_device in snapshot.values())


def main():
    for row in json.loads(sys.argv[1]):
        try:
            print(json.dumps({"peak": peak(row)}), flush=True)
        except Exception as error:  # pylint: disable=broad-exception-caught
            print(json.dumps({"peak": None, "error": repr(error)[:200]}), flush=True)


if __name__ == "__main__":
    main()
