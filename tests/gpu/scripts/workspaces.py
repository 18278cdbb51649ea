#!/usr/bin/env python3
"""Memory that cuBLAS, recurrent layers of cuDNN and attention take beyond their results.

    workspaces.py --seconds N [--tiny]

Bytes at the peak, and those that stay, of products by kind; of recurrent layers by cell, width,
layers, batch, length, direction, dropout, kind, with and without gradients; and of attention by
its implementation."""
import itertools
import random

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from measured import SHORT, all_until, peak
from told import Clock, arguments, tell

CELLS = (nn.LSTM, nn.GRU, nn.RNN)
ATTENTION = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
             "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}


def sampled(tiny, *lists):
    """All combinations, in an order of which each part is a sample; or the first."""
    found = list(itertools.product(*lists))
    if tiny:
        return found[:1]
    random.Random(1).shuffle(found)
    return found


def product(dtype, side):
    """The workspace that a product asks for when its library has none yet."""
    a = torch.zeros(side, side, device="cuda", dtype=dtype)
    bias = torch.zeros(side, device="cuda", dtype=dtype)
    calls = {"product": lambda: a @ a, "with a bias": lambda: functional.linear(a, a, bias),
             "with GELU": lambda: torch.ops.aten._addmm_activation(bias, a, a, use_gelu=True)}
    for name, call in calls.items():
        torch._C._cuda_clearCublasWorkspaces()
        beyond, kept, _ = peak(call)
        tell("products", call=name, dtype=SHORT[dtype], side=side, peak=beyond, kept=kept)


def recurrent(cell, wide, layers, batch, steps, way, dtype, grad):
    """One layer; `way`: (both directions, dropout)."""
    both, dropout = way
    net = cell(wide, wide, layers, dropout=dropout if layers > 1 else 0.0, bidirectional=both,
               device="cuda", dtype=dtype)
    x = torch.zeros(steps, batch, wide, device="cuda", dtype=dtype)
    with torch.set_grad_enabled(grad):
        beyond, kept, y = peak(lambda: net(x)[0])
        backward = peak(lambda: y.sum().backward())[0] if grad else 0
    tell("recurrent", cell=cell.__name__, wide=wide, layers=layers, batch=batch, steps=steps,
         both=both, dropout=dropout, dtype=SHORT[dtype], grad=grad, peak=beyond, kept=kept,
         backward=backward, weights=sum(p.numel() for p in net.parameters()))


def attention(name, heads, length, wide, causal, dtype):
    query, key, value = (torch.zeros(2, heads, length, wide, device="cuda", dtype=dtype,
                                     requires_grad=True) for _ in range(3))
    with sdpa_kernel(ATTENTION[name]):
        beyond, kept, y = peak(lambda: functional.scaled_dot_product_attention(
            query, key, value, is_causal=causal))
        backward = peak(lambda: y.backward(torch.zeros_like(y)))[0]
    tell("attention", backend=name, heads=heads, length=length, wide=wide, causal=causal,
         dtype=SHORT[dtype], peak=beyond, kept=kept, backward=backward)


def main():
    args = arguments(__doc__)
    clock, tiny = Clock(args.seconds), args.tiny
    all_until(clock, product, sampled(tiny, SHORT, (32,) if tiny else (256, 4096)))
    all_until(clock.part(args.seconds * 0.6), recurrent, sampled(
        tiny, CELLS, (32,) if tiny else (128, 512, 1024), (2,) if tiny else (1, 2, 4), (8, 64),
        (48, 256), ((False, 0.0), (True, 0.0), (False, 0.2)), (torch.float32, torch.float16),
        (True, False)))
    all_until(clock, attention, sampled(
        tiny, ATTENTION, (2,) if tiny else (16, 64), (64,) if tiny else (512, 4096), (64, 128, 256),
        (False, True), (torch.bfloat16, torch.float16)))
    free, total = torch.cuda.mem_get_info()
    tell("held", used=total - free, reserved=torch.cuda.memory_reserved())


if __name__ == "__main__":
    main()
