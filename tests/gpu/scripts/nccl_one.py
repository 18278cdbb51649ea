#!/usr/bin/env python3
"""One rank of NCCL: a communicator, collectives, a second communicator, and their results.

    nccl_one.py [--full]     with as much memory held as there is before the communicator is made
"""
import os
import sys
import tempfile

import torch
from torch import distributed

BLOCK = 64 << 20


def fill():
    """Blocks until the limit and a few beyond: what follows finds a full device."""
    free, _ = torch.cuda.mem_get_info()
    return [torch.zeros(BLOCK, dtype=torch.uint8, device="cuda")
            for _ in range(min(64, free // BLOCK + 2))]


def main():
    torch.cuda.set_device(0)
    kept = fill() if "--full" in sys.argv else []
    with tempfile.TemporaryDirectory() as folder:
        distributed.init_process_group("nccl", init_method=f"file://{folder}/rendezvous",
                                       rank=0, world_size=1, device_id=torch.device("cuda", 0))
        for group in (None, distributed.new_group([0])):
            words = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
            expected = words.clone()
            distributed.all_reduce(words, group=group)
            gathered = torch.empty_like(words)
            distributed.all_gather_into_tensor(gathered, words, group=group)
            good = bool((gathered == expected).all())
            print(f"{'ok' if good else 'wrong'}: collectives of one rank")
        torch.cuda.synchronize()
        distributed.destroy_process_group()
    print(f"figure: {len(kept)} blocks held, NCCL {torch.cuda.nccl.version()}, "
          f"NCCL_CUMEM_ENABLE {os.environ.get('NCCL_CUMEM_ENABLE')}")


if __name__ == "__main__":
    main()
