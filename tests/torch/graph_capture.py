#!/usr/bin/env python3
"""Captures a whole training step as a CUDA graph and replays it."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(128, 512, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
optimizer.zero_grad(set_to_none=True)  # gradients of the capture come from its own memory
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured = step()
for replay in range(4):
    inputs.copy_(torch.randn(128, 512))
    graph.replay()
    print("replay", replay, "loss", captured.item())
