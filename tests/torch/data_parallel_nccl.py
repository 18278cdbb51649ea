#!/usr/bin/env python3
"""Data-parallel training with NCCL; each process that torchrun starts has a device of its own.

    data_parallel_nccl.py [--sharded] [--steps N]

--sharded keeps a shard of each parameter on each device (FSDP) instead of a copy (DDP). Every rank
also takes part in each kind of collective, in a group of its own choice.
"""
import argparse
import os

import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH = 1024


def spread(model, sharded):
    if not sharded:
        return DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    for layer in model:
        fully_shard(layer)
    return fully_shard(model)


def exchange(group=None):
    """One collective of each kind; only shapes can be right."""
    ranks = distributed.get_world_size(group)
    mine = torch.ones(256, device="cuda")
    all_of_them = torch.empty(ranks * 256, device="cuda")
    distributed.all_reduce(mine, group=group)
    distributed.all_gather_into_tensor(all_of_them, mine, group=group)
    distributed.reduce_scatter_tensor(mine, all_of_them, group=group)
    distributed.all_to_all_single(torch.empty_like(all_of_them), all_of_them, group=group)
    distributed.all_gather([torch.empty_like(mine) for _ in range(ranks)], mine, group=group)
    root = distributed.get_global_rank(group or distributed.group.WORLD, 0)
    distributed.broadcast(mine, root, group=group)
    distributed.reduce(mine, root, group=group)
    distributed.barrier(group=group)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sharded", action="store_true")
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    distributed.init_process_group("nccl", device_id=device)
    rank = distributed.get_rank()
    print("rank", rank, "pid", os.getpid(), flush=True)
    model = nn.Sequential(nn.Linear(256, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
                          nn.Linear(WIDTH, 10)).cuda()
    model = spread(model, options.sharded)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for step in range(options.steps):
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print("rank", rank, "step", step, "MiB", torch.cuda.memory_allocated() >> 20, flush=True)
    exchange()
    exchange(distributed.new_group())
    exchange(distributed.new_subgroups(group_size=1)[0])
    distributed.destroy_process_group()
    print("rank", rank, "done", flush=True)


if __name__ == "__main__":
    main()
