#!/usr/bin/env python3
"""Training with an optimizer of bitsandbytes that keeps its state in 8 bits; a layer of 4 bits."""
import bitsandbytes
import torch

WIDTH = 4096


def train(model, steps):
    optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())
    for _ in range(steps):
        x = torch.randn(64, WIDTH, device="cuda")
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [tensor for state in optimizer.state.values() for tensor in state.values()
            if torch.is_tensor(tensor) and tensor.is_cuda]


def main():
    state = train(torch.nn.Linear(WIDTH, WIDTH).cuda(), steps=3)
    kept = sum(tensor.numel() * tensor.element_size() for tensor in state)
    print(f"state: {kept}, allocated: {torch.cuda.memory_allocated()}")
    layer = bitsandbytes.nn.Linear4bit(WIDTH, WIDTH, compute_dtype=torch.bfloat16).cuda()
    shape = tuple(layer(torch.randn(8, WIDTH, device="cuda", dtype=torch.bfloat16)).shape)
    print(f"output: {shape}, allocated: {torch.cuda.memory_allocated()}, "
          f"peak: {torch.cuda.max_memory_allocated()}")


if __name__ == "__main__":
    main()
