#!/usr/bin/env python3
"""A kernel that Numba compiles, and memory that it asks the driver for itself."""
import numpy
from numba import cuda

ELEMENTS = 1 << 20


@cuda.jit
def add(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + 1


def main():
    before = cuda.current_context().get_memory_info()
    x = cuda.to_device(numpy.arange(ELEMENTS, dtype=numpy.float32))
    out = cuda.device_array_like(x)
    add[ELEMENTS // 256, 256](x, out)
    cuda.synchronize()
    after = cuda.current_context().get_memory_info()
    print(f"copied: {out.copy_to_host().size}, taken: {before.free - after.free}")


if __name__ == "__main__":
    main()
