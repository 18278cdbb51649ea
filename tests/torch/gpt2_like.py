#!/usr/bin/env python3
"""Trains a model of GPT-2's shape on made-up text with plain PyTorch.

The same seed gives the same losses, bit for bit, on the same machine; each is printed with its
exact hexadecimal value. The text is a sequence with a simple rule and some noise, so the loss
falls. The last lines give the peak memory and the time of a step.
"""
import argparse
import contextlib
import os
import statistics
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic matrix products

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    """Causal self-attention, written out: its matrices are the large, short-lived tensors."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (part.reshape(shape).transpose(1, 2)
                             for part in self.inputs(x).split(width, dim=2))
        scores = query @ key.transpose(-2, -1) / shape[3] ** 0.5
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = functional.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        return self.output((weights @ value).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.checkpointing = args.checkpointing
        self.tokens = nn.Embedding(args.vocabulary, args.width)
        self.positions = nn.Embedding(args.context, args.width)
        self.blocks = nn.ModuleList(Block(args.width, args.heads) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width)
        self.head = nn.Linear(args.width, args.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return self.head(self.norm(x))


def text(args, step):
    """One batch: each token follows from the one before by a fixed rule, but for some noise."""
    chance = torch.Generator().manual_seed(args.seed * 1000003 + step)
    length = args.context
    if args.vary_length:
        length = int(torch.randint(args.context // 2, args.context + 1, (), generator=chance))
    tokens = torch.randint(args.vocabulary, (args.batch, length + 1), generator=chance)
    follows = torch.rand(args.batch, length + 1, generator=chance) < 0.9
    for i in range(1, length + 1):
        rule = (tokens[:, i - 1] * 5 + 3) % args.vocabulary
        tokens[:, i] = torch.where(follows[:, i], rule, tokens[:, i])
    return tokens[:, :-1], tokens[:, 1:]


def kept_on_cpu(args):
    """The context in which PyTorch keeps the tensors for the backward pass in page-locked host
    memory, if asked for."""
    if args.save_on_cpu:
        return torch.autograd.graph.save_on_cpu(pin_memory=True)
    return contextlib.nullcontext()


def train(args, after_step=lambda *figures: True):
    """`after_step(length, seconds for the text, seconds for the rest)` says whether to go on."""
    device = torch.device(args.device)
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # costs time, changes no loss
    with torch.device(device if args.made_on_device else "cpu"):
        model = Model(args)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate)
    print(f"parameters: {sum(p.numel() for p in model.parameters()):,}")

    seconds = []
    for step in range(1, args.steps + 1):
        begin = time.perf_counter()
        inputs, targets = (part.to(device) for part in text(args, step))
        ready = time.perf_counter()
        with torch.autocast(device.type, torch.bfloat16, enabled=args.bf16), kept_on_cpu(args):
            logits = model(inputs)
        loss = functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value = loss.item()  # waits for the step
        end = time.perf_counter()
        seconds.append(end - begin)
        print(f"step {step}: loss {value:.6f} {value.hex()}", flush=True)
        if not after_step(inputs.shape[1], ready - begin, end - ready):
            break

    if device.type == "cuda":
        mib = 1 << 20
        print(f"peak memory: {torch.cuda.max_memory_allocated() / mib:.1f} MiB allocated, "
              f"{torch.cuda.max_memory_reserved() / mib:.1f} MiB reserved")
    print(f"step time: {statistics.median(seconds) * 1e3:.1f} ms (median of {len(seconds)}; "
          f"all together {sum(seconds):.1f} s, the longest {max(seconds):.1f} s)")


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--context", type=int, default=1024, help="tokens in a sequence")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rate", type=float, default=3e-4, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--made-on-device", action="store_true",
                        help="draw the model's numbers there: faster, and others")
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16")
    parser.add_argument("--checkpointing", action="store_true",
                        help="recompute activations in the backward pass")
    parser.add_argument("--save-on-cpu", action="store_true",
                        help="keep activations on the host until the backward pass")
    parser.add_argument("--vary-length", action="store_true",
                        help="sequences of a different length in each step")
    args = parser.parse_args(words)
    if args.width % args.heads != 0:
        parser.error("--width must be a multiple of --heads")
    if torch.device(args.device).type == "cuda" and not torch.cuda.is_available():
        sys.exit("gpt2_like.py: no GPU that PyTorch can use")
    return args


def main():
    train(parse())


if __name__ == "__main__":
    main()
