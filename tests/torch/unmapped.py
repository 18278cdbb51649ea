#!/usr/bin/env python3
"""Unmaps a granule of a live tensor behind everybody's back, then uses the tensor once.

    unmapped.py copy|product|convolution|kernel|addition [--no-wait]
"""
import ctypes
import sys

import torch
from torch.nn import functional

GRANULE = 2 << 20
KERNEL = """
.version 8.0
.target sm_75
.address_size 64
.visible .entry touch(.param .u64 p)
{
    ret;
}
"""


def first_granule(tensor):
    return (tensor.data_ptr() + GRANULE - 1) // GRANULE * GRANULE


def from_granule(tensor):
    """Of a kernel's arguments it is known where they begin, not what the kernel makes of them."""
    return tensor.view(-1)[(first_granule(tensor) - tensor.data_ptr()) // tensor.itemsize:]


def launch(tensor):
    kernel = torch.cuda._utils._cuda_load_module(KERNEL, ["touch"])["touch"]
    kernel(grid=(1, 1, 1), block=(1, 1, 1), args=(from_granule(tensor),))


USES = {
    "copy": lambda tensor: tensor.to("cpu"),
    "product": lambda tensor: tensor @ tensor,
    "convolution": lambda tensor: functional.conv2d(tensor[None, None], tensor[None, None, :3, :3]),
    "kernel": launch,
    "addition": lambda tensor: from_granule(tensor).add_(1),
}


def main():
    use = USES[sys.argv[1]]
    tensor = torch.ones(2048, 2048, device="cuda")
    use(tensor)
    torch.cuda.synchronize()
    print("used while it was there", flush=True)
    driver = ctypes.CDLL("libcuda.so.1")
    if driver.cuMemUnmap(ctypes.c_uint64(first_granule(tensor)), ctypes.c_size_t(GRANULE)) != 0:
        sys.exit("the granule was not unmapped")
    use(tensor)
    if "--no-wait" not in sys.argv:
        torch.cuda.synchronize()
        print("waited while it was gone", flush=True)


if __name__ == "__main__":
    main()
