#!/usr/bin/env python3
"""A model compiled with inductor, and with its graphs where the allocator allows them."""
import torch
from torch import nn


def run(mode):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 64)).cuda()
    inputs = torch.randn(64, 256, device="cuda")
    expected = model(inputs)
    compiled = torch.compile(model, mode=mode)
    for _ in range(4):
        found = compiled(inputs)
    good = torch.allclose(found, expected, rtol=1e-3, atol=1e-3)
    found.sum().backward()
    torch.cuda.synchronize()
    print(f"{'ok' if good else 'wrong'}: torch.compile, mode {mode}", flush=True)


def main():
    run("default")
    try:
        run("reduce-overhead")
    except RuntimeError as error:
        print(f"skipped: reduce-overhead: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
