#!/usr/bin/env python3
"""Replays the forward and backward pass as a CUDA graph, with the optimizer outside of it, and
evaluates in between with a batch that needs far more memory."""
import torch
from torch import nn

WIDTH, LAYERS, BATCH, EVALUATED = 2048, 4, 64, 8192

model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
                        for _ in range(LAYERS)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
inputs = torch.randn(BATCH, WIDTH, device="cuda")


def forward_and_backward():
    loss = model(inputs).square().mean()
    loss.backward()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(2):
        optimizer.zero_grad(set_to_none=True)
        forward_and_backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
optimizer.zero_grad(set_to_none=True)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured = forward_and_backward()
for epoch in range(3):
    for _ in range(3):
        graph.replay()
        optimizer.step()
    with torch.no_grad():
        score = model(torch.randn(EVALUATED, WIDTH, device="cuda")).square().mean()
    print("epoch", epoch, "loss", captured.item(), "score", score.item())
