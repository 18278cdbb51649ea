#!/usr/bin/env python3
"""Allocates more than the device has free, then checks and changes every tensor twice."""
import argparse
import time

import torch

MIB = 1 << 20
BLOCK = 128 * MIB


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--extra-mib", type=int, default=4096, help="beyond what is free")
    parser.add_argument("--most", type=int, default=1 << 30, help="blocks at most")
    args = parser.parse_args()
    free, total = torch.cuda.mem_get_info()
    count = min(args.most, (free + args.extra_mib * MIB) // BLOCK)
    begin = time.monotonic()
    blocks = []
    try:
        for i in range(count):
            blocks.append(torch.full((BLOCK // 4,), i, dtype=torch.int32, device="cuda"))
    except torch.cuda.OutOfMemoryError as error:
        print(f"wrong: out of memory after {len(blocks)} of {count} blocks: "
              f"{str(error).splitlines()[0]}")
    torch.cuda.synchronize()
    print(f"figure: {len(blocks)} blocks of 128 MiB, free before {free}, total {total}, "
          f"{time.monotonic() - begin:.1f} s")
    for turn in range(2):
        begin = time.monotonic()
        bad = sum(int((block != i + turn).sum()) != 0 for i, block in enumerate(blocks))
        print(f"{'wrong' if bad else 'ok'}: turn {turn}: {bad} blocks differ")
        for block in blocks:
            block += 1
        torch.cuda.synchronize()
        print(f"figure: turn {turn}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
