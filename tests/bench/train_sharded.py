#!/usr/bin/env python3
"""Trains a model of the shape of Llama 70B as one rank of 64 does: FSDP2 (fully_shard) on PyTorch's
process group `fake`, which communicates with nobody, or with --job on NCCL, activations recomputed
layer by layer, bf16 with fp32 shards, AdamW.

On the simulated GPU, whose kernels compute nothing, a step takes seconds. Prints a JSON object for
each step, the driver calls in it, and at the end PyTorch's own peaks in bytes.
"""
import argparse
import ctypes
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

HIDDEN, HEADS, GROUPS, INNER, WORDS = 8192, 64, 8, 28672, 128256
WIDTH = HIDDEN // HEADS
CALLS = ["cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap",
         "cuMemRelease", "cuEventRecord", "cuEventQuery", "cuStreamWaitEvent", "cuEventSynchronize"]


def rotate(x, cos, sin):
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


class Layer(nn.Module):
    """One decoder layer: attention with grouped heads, and a gated linear unit."""

    def __init__(self):
        super().__init__()
        self.before, self.between = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        self.q = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.k = nn.Linear(HIDDEN, GROUPS * WIDTH, bias=False)
        self.v = nn.Linear(HIDDEN, GROUPS * WIDTH, bias=False)
        self.o = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.gate = nn.Linear(HIDDEN, INNER, bias=False)
        self.up = nn.Linear(HIDDEN, INNER, bias=False)
        self.down = nn.Linear(INNER, HIDDEN, bias=False)

    def attend(self, x, cos, sin):
        batch, length, _ = x.shape
        q, k, v = (linear(x).view(batch, length, -1, WIDTH).transpose(1, 2)
                   for linear in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (t.repeat_interleave(HEADS // GROUPS, dim=1) for t in (k, v))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(out.transpose(1, 2).reshape(batch, length, HIDDEN))

    def forward(self, x, cos, sin):
        x = x + self.attend(self.before(x), cos, sin)
        y = self.between(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embed = nn.Embedding(WORDS, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = nn.RMSNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, WORDS, bias=False)

    def forward(self, tokens, cos, sin):
        x = self.embed(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, cos, sin, use_reentrant=False)
        return self.head(self.norm(x))


def counts():
    """The calls that the simulated driver has seen so far; none on a real one."""
    try:
        calls = ctypes.CDLL("libcuda.so.1").spillway_sim_calls
    except AttributeError:
        return {}
    calls.restype = ctypes.c_ulonglong
    return {name: calls(name.encode()) for name in CALLS}


def make(arguments):
    if arguments.job:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
    else:
        dist.init_process_group("fake", rank=0, world_size=arguments.ranks, store=FakeStore())
    mesh = dist.init_device_mesh("cuda", (dist.get_world_size(),))
    with torch.device("meta"):
        model = Model(arguments.layers)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device="cuda")
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def step(model, optimizer, shape):
    tokens = torch.randint(WORDS, shape, device="cuda")
    cos, sin = (torch.ones(shape[1], WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    logits = model(tokens, cos, sin)
    loss = functional.cross_entropy(logits.view(-1, WORDS).float(), tokens.view(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("layers", 80), ("ranks", 64), ("steps", 6), ("batch", 1),
                        ("length", 4096)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--job", action="store_true",
                        help="be a rank of a job, with NCCL, as the environment says")
    arguments = parser.parse_args()
    model, optimizer = make(arguments)
    for number in range(1, arguments.steps + 1):
        before = counts()
        step(model, optimizer, (arguments.batch, arguments.length))
        torch.cuda.synchronize()
        after = counts()
        print(json.dumps({"step": number, "allocated": torch.cuda.memory_allocated(),
                          "reserved": torch.cuda.memory_reserved(),
                          "calls": {name: after[name] - before[name] for name in after}}),
              flush=True)
    print(json.dumps({"allocated_peak": torch.cuda.max_memory_allocated(),
                      "reserved_peak": torch.cuda.max_memory_reserved()}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
