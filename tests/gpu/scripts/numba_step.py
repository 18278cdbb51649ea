#!/usr/bin/env python3
"""A Numba kernel that adds."""
import numpy
from numba import cuda


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def main():
    x = numpy.arange(1 << 16, dtype=numpy.float32)
    out = cuda.device_array_like(x)
    add[256, 256](cuda.to_device(x), cuda.to_device(x), out)
    print(f"{'ok' if (out.copy_to_host() == 2 * x).all() else 'wrong'}: a kernel by Numba")


if __name__ == "__main__":
    main()
