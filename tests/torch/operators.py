#!/usr/bin/env python3
"""Operators whose launches libraries shape by the version of the code that was chosen (CUB), with
those of a short training step. Without code for the GPU, PyTorch's error must say so."""
import torch
from torch import nn

values = torch.randn(1000, device="cuda")
values.sort()
values.argsort(stable=True)
values.cumsum(0)
values.topk(10)
(values > 0).nonzero()
values[values > 0]
torch.unique(values)
torch.histc(values)
torch.multinomial(values.abs(), 4)

model = nn.Sequential(nn.Embedding(100, 64), nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(),
                      nn.Dropout(), nn.Linear(64, 100)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.randint(0, 100, (8, 16), device="cuda")
for step in range(2):
    with torch.autocast("cuda", dtype=torch.float16):
        output = model(tokens)
    loss = nn.functional.cross_entropy(output.flatten(0, 1).float(), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
nn.functional.scaled_dot_product_attention(*[torch.randn(2, 4, 64, 32, device="cuda")] * 3)
nn.Conv2d(3, 8, 3).cuda()(torch.randn(2, 3, 32, 32, device="cuda"))
torch.cuda.synchronize()
print("capability", *torch.cuda.get_device_capability())
