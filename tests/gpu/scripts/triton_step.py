#!/usr/bin/env python3
"""A Triton kernel that adds."""
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def main():
    n = 1 << 20
    x, y = (torch.randn(n, device="cuda") for _ in range(2))
    out = torch.empty_like(x)
    add[(n // 1024,)](x, y, out, n, block=1024)
    good = torch.equal(out, x + y)
    print(f"{'ok' if good else 'wrong'}: a kernel by Triton {triton.__version__}")


if __name__ == "__main__":
    main()
