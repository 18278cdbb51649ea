#!/usr/bin/env python3
"""Uses PyTorch's allocator in the process that the argument names, and prints what it has
allocated: `here`, in a `spawned` or `forked` child, or here `after` another library."""
import ctypes
import multiprocessing
import os
import sys

BYTES = 1 << 20


def use():
    import torch

    kept = torch.ones(BYTES, dtype=torch.uint8, device="cuda")
    print(torch.cuda.memory_allocated(), flush=True)
    del kept


def fork():
    import torch  # noqa: F401, which the child shares

    child = os.fork()
    if child == 0:
        use()
        sys.exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def spawn():
    child = multiprocessing.get_context("spawn").Process(target=use)
    child.start()
    child.join()
    sys.exit(child.exitcode)


def after():
    """Memory of another library, before PyTorch is loaded."""
    runtime = ctypes.CDLL("libcudart.so.13")
    block = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(BYTES)) != 0:
        sys.exit("cudaMalloc failed")
    use()
    runtime.cudaFree(block)


if __name__ == "__main__":
    {"here": use, "forked": fork, "spawned": spawn, "after": after}[sys.argv[1]]()
