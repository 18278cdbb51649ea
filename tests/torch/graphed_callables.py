#!/usr/bin/env python3
"""Trains through torch.cuda.make_graphed_callables: the passes of two modules are graphs."""
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # PyTorch's own, of streams of the backward pass


def module(outputs):
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, outputs)).cuda()


def inputs(requires_grad=False):
    return torch.randn(64, 256, device="cuda", requires_grad=requires_grad)


first, second = torch.cuda.make_graphed_callables(
    (module(256), module(64)), ((inputs(),), (inputs(requires_grad=True),)))
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for step in range(4):
    optimizer.zero_grad(set_to_none=True)
    loss = second(first(inputs())).square().mean()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item(), torch.cuda.memory_allocated())
