#!/usr/bin/env python3
"""CuPy: a product, its memory pools, and a kernel of its own."""
import cupy


def main():
    x = cupy.arange(1 << 20, dtype=cupy.float64)
    total = float((x * 2).sum())
    good = total == float((1 << 20) * ((1 << 20) - 1))
    print(f"{'ok' if good else 'wrong'}: sum {total}")
    kernel = cupy.RawKernel(
        'extern "C" __global__ void twice(float *p, int n)'
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] *= 2; }", "twice")
    y = cupy.ones(4096, dtype=cupy.float32)
    kernel((16,), (256,), (y, 4096))
    print(f"{'ok' if bool((y == 2).all()) else 'wrong'}: a kernel of its own")
    with cupy.cuda.using_allocator(cupy.cuda.malloc_async):
        z = cupy.ones(1 << 22, dtype=cupy.float32)
        print(f"{'ok' if float(z.sum()) == float(1 << 22) else 'wrong'}: stream-ordered memory")
    print(f"figure: pool {cupy.get_default_memory_pool().total_bytes()} bytes")


if __name__ == "__main__":
    main()
