#!/usr/bin/env python3
"""Trains with DeepSpeed's ZeRO of the stage that is given, under torchrun; rank 0 prints what is
allocated."""
import sys

import deepspeed
import torch
from torch import nn

WIDTH, LAYERS, BATCH = 1024, 6, 8

torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(LAYERS)])
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
    "train_micro_batch_size_per_gpu": BATCH,
    # The fused one would be compiled, which needs a CUDA toolkit.
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    "zero_optimization": {"stage": int(sys.argv[1])},
})
for _ in range(4):
    loss = engine(torch.randn(BATCH, WIDTH, device=engine.device)).square().mean()
    engine.backward(loss)
    engine.step()
if engine.global_rank == 0:
    print("allocated:", torch.cuda.memory_allocated())
