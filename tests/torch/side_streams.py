#!/usr/bin/env python3
"""Copies the next batch on a stream of its own, and tells the allocator with record_stream."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
copies = torch.cuda.Stream()


def fetch():
    host = torch.randn(256, 1024).pin_memory()
    with torch.cuda.stream(copies):
        return host.to("cuda", non_blocking=True)


following = fetch()
for step in range(6):
    torch.cuda.current_stream().wait_stream(copies)
    batch = following
    batch.record_stream(torch.cuda.current_stream())
    following = fetch()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
