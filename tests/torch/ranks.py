#!/usr/bin/env python3
"""Trains a small decoder as one rank of a job, and prints in JSON the rank and PyTorch's own peaks
in bytes, allocated and reserved.

    ranks.py [--shape fsdp|tp|pp|ddp] [--eager]

fsdp: FSDP2 with bf16; tp: tensor parallel within pairs of ranks, FSDP2 across them; pp: as many
pipeline stages as ranks; ddp: a copy on each rank, gradients in buckets. --eager binds the device
to the group, so that further groups split off its communicator. Every shape also exchanges objects,
and uses a group of Gloo.
"""
import argparse
import json
import os
import sys

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

WIDTH, WORDS, LENGTH, BATCH, LAYERS, STEPS = 256, 2048, 128, 8, 8, 3
PARTS = 8  # of a batch, in a pipeline


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(functional.silu(self.up(self.norm(x))))


class Model(nn.Module):
    """With the first and the last part only where `first` and `last` say so."""

    def __init__(self, layers=LAYERS, first=True, last=True):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH) if first else None
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(WIDTH, WORDS) if last else None

    def forward(self, x):
        x = self.embed(x) if self.embed is not None else x
        for layer in self.layers:
            x = layer(x)
        return self.head(x) if self.head is not None else x


def loss_of(logits, tokens):
    return functional.cross_entropy(logits.view(-1, WORDS).float(), tokens.view(-1))


def shard(model, mesh):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def spread(shape, ranks):
    model = Model().cuda()
    if shape == "ddp":
        return DistributedDataParallel(model)
    if shape == "fsdp":
        return shard(model, init_device_mesh("cuda", (ranks,)))
    mesh = init_device_mesh("cuda", (ranks // 2, 2), mesh_dim_names=("dp", "tp"))
    for layer in model.layers:
        parallelize_module(layer, mesh["tp"],
                           {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return shard(model, mesh["dp"])


def train(shape, ranks, tokens):
    model = spread(shape, ranks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        loss_of(model(tokens), tokens).backward()
        if shape != "tp":  # its parameters are on two meshes, and a norm takes one
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def train_pipeline(rank, ranks, tokens):
    model = Model(LAYERS // ranks, rank == 0, rank == ranks - 1).cuda()
    example = torch.empty(BATCH // PARTS, LENGTH, WIDTH, device="cuda")
    micro = tokens[:BATCH // PARTS] if rank == 0 else example
    logits = torch.empty(BATCH // PARTS, LENGTH, WORDS, device="cuda")
    stage = PipelineStage(model, rank, ranks, torch.device("cuda"), input_args=(micro,),
                          output_args=(logits if rank == ranks - 1 else example,))
    schedule = Schedule1F1B(stage, n_microbatches=PARTS, loss_fn=loss_of)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        schedule.step(*([tokens] if rank == 0 else []),
                      **({"target": tokens} if rank == ranks - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()


def exchange(rank, ranks):
    """Objects, on the device and on the host."""
    for group in (None, distributed.new_group(backend="gloo")):
        found = [None] * ranks
        distributed.all_gather_object(found, {"rank": rank, "text": "x" * 1000}, group=group)
        assert all(len(item["text"]) == 1000 for item in found)
        distributed.broadcast_object_list([rank], src=0, group=group)
        distributed.barrier(group=group)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=("fsdp", "tp", "pp", "ddp"), default="fsdp")
    parser.add_argument("--eager", action="store_true")
    options = parser.parse_args()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    distributed.init_process_group("cpu:gloo,cuda:nccl",
                                   device_id=device if options.eager else None)
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(1)
    tokens = torch.randint(WORDS, (BATCH, LENGTH), device="cuda")
    if options.shape == "pp":
        train_pipeline(rank, ranks, tokens)
    else:
        train(options.shape, ranks, tokens)
    torch.cuda.synchronize()
    peaks = {"rank": rank, "allocated": torch.cuda.max_memory_allocated(),
             "reserved": torch.cuda.max_memory_reserved()}
    exchange(rank, ranks)
    distributed.barrier()
    distributed.destroy_process_group()
    sys.stdout.write(json.dumps(peaks) + "\n")  # in one piece, unlike print() without a buffer
    sys.stdout.flush()


if __name__ == "__main__":
    main()
