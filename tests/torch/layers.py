#!/usr/bin/env python3
"""One forward pass whose tensors can be counted. Prints the bytes on the device that each rule of
some ready-made policies is meant for; the run holds most memory at its end, with all of them."""
import json

import torch
from torch import nn

WIDTH, TOKENS, WORDS = 1024, 1024, 2000
WORKSPACE = 32 << 20  # of cuBLAS on an H100; PyTorch makes another, which a newer one frees at once


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        with torch.device("cuda"):
            self.words = nn.Embedding(WORDS, WIDTH)
            self.norm = nn.LayerNorm(WIDTH)
        self.linear = nn.Linear(WIDTH, WIDTH, bias=False)
        self.kept = []

    def forward(self, text):
        self.kept.append(self.words(text))
        self.kept.append(self.norm(self.kept[-1]))
        self.kept.append(self.linear(self.kept[-1]))
        return self.kept[-1]


def main():
    model = Model().to("cuda")
    text = torch.zeros(TOKENS, dtype=torch.int64, device="cuda")
    before = torch.cuda.memory_allocated()
    result = model(text)
    kept = torch.cuda.memory_allocated() - before >= WORKSPACE
    most = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    output = TOKENS * WIDTH * 4
    embeddings = WORDS * WIDTH * 4 + output
    normalisation = 2 * WIDTH * 4 + output + 2 * TOKENS * 4  # and means and deviations for backward
    print(json.dumps({
        "embeddings-stay": {"embeddings": embeddings, "normalisation": normalisation},
        "activations-to-host-first": {"activations": 3 * output + 2 * TOKENS * 4,
                                      "workspaces": (2 if kept else 1) * WORKSPACE},
        "inference-weights-on-host": {"weights": WIDTH * WIDTH * 4},
    }))
    del result, most


if __name__ == "__main__":
    main()
