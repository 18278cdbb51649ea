#!/usr/bin/env python3
"""A transformer that saves memory wherever it can: checkpointing, mixed precision, accumulation,
gradient clipping and fused attention."""
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, LAYERS, LENGTH, WORDS = 256, 4, 4, 128, 1000


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                 nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        shape = (*x.shape[:2], HEADS, WIDTH // HEADS)
        query, key, value = (part.reshape(shape).transpose(1, 2)
                             for part in self.inputs(self.before(x)).split(WIDTH, dim=2))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.words(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(x)


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for step in range(4):
    for _ in range(2):
        tokens = torch.randint(WORDS, (4, LENGTH + 1), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            scores = model(tokens[:, :-1])
        loss = functional.cross_entropy(scores.float().flatten(0, 1), tokens[:, 1:].flatten())
        (loss / 2).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("step", step, "loss", loss.item())
