#!/usr/bin/env python3
"""torch.compile with its own backend, whose kernels Triton compiles for the simulated GPU, and a
kernel written in Triton."""
import torch
import triton
from torch import nn
from triton import language as tl


@triton.jit
def scale(source, result, count, factor, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(result + at, tl.load(source + at, mask=at < count) * factor, mask=at < count)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        parts = self.qkv(self.norm(x)).view(*x.shape[:2], 3, 4, -1).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


torch.set_float32_matmul_precision("high")
model = Block(128).cuda()
compiled = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    inputs = torch.randn(8, 64, 128, device="cuda")
    scaled = torch.empty_like(inputs)
    scale[(triton.cdiv(inputs.numel(), 1024),)](inputs, scaled, inputs.numel(), 0.5, SIZE=1024)
    loss = compiled(scaled).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
