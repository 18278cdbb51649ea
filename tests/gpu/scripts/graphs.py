#!/usr/bin/env python3
"""Captures a training step while another thread allocates, and replays it 100 times: the weights
must be those of the same steps without a graph. Then replays a graph of kernels on blocks that
other memory has driven to the host meanwhile."""
import threading

import torch
from torch import nn

STEPS = 100
MOVES = 10


def fresh():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 64)).cuda()
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def step(model, optimizer, inputs):
    optimizer.zero_grad(set_to_none=True)
    model(inputs).square().mean().backward()
    optimizer.step()


def inputs_of(turn):
    return torch.randn(128, 512, generator=torch.Generator().manual_seed(turn))


def allocate(stop):
    while not stop.is_set():
        kept = [torch.empty(n << 20, dtype=torch.uint8, device="cuda") for n in (1, 5, 30)]
        del kept


def replay_after_pressure():
    """With a limit of 600 MiB, the blocks of the graph and the others do not fit at once."""
    blocks = [torch.full((16 << 20,), float(i), device="cuda") for i in range(4)]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for block in blocks:
            block.add_(1)
    for _ in range(MOVES):
        for _ in range(100):  # what lives now is older than these
            torch.zeros(1 << 20, device="cuda")
        others = [torch.ones(16 << 20, device="cuda") for _ in range(7)]
        torch.cuda.synchronize()
        del others
        graph.replay()
    same = all(bool((block == i + MOVES).all()) for i, block in enumerate(blocks))
    print(f"{'ok' if same else 'wrong'}: blocks of a graph, moved between {MOVES} replays")


def main():
    ballast = [torch.ones(32 << 20, device="cuda") for _ in range(3)]
    model, optimizer = fresh()
    inputs = torch.zeros(128, 512, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step(model, optimizer, inputs)
    torch.cuda.synchronize()
    stop = threading.Event()
    beside = threading.Thread(target=allocate, args=(stop,))
    beside.start()
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step(model, optimizer, inputs)
        for turn in range(STEPS):
            inputs.copy_(inputs_of(turn))
            graph.replay()
        torch.cuda.synchronize()
    finally:
        stop.set()
        beside.join()
    same, other = fresh()
    for turn in [None] * 3 + list(range(STEPS)):
        step(same, other, inputs.zero_() if turn is None else inputs.copy_(inputs_of(turn)))
    close = all(torch.allclose(a, b, rtol=1e-4, atol=1e-5)
                for a, b in zip(model.parameters(), same.parameters()))
    print(f"{'ok' if close else 'wrong'}: weights after {STEPS} replays")
    kept = all(bool((block == 1).all()) for block in ballast)
    print(f"{'ok' if kept else 'wrong'}: memory beside the graph")
    del graph, ballast, model, optimizer, inputs, same, other
    torch.cuda.empty_cache()
    replay_after_pressure()


if __name__ == "__main__":
    main()
