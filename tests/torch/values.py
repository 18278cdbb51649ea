#!/usr/bin/env python3
"""Small operations on the simulated GPU, each beside the same on the CPU. Prints what differs."""
import sys

import torch


def numbers(device, dtype=torch.float32):
    return torch.tensor([[3.0, -1.5, 2.0, 0.0], [0.25, 5.0, -4.0, 7.0]], dtype=dtype, device=device)


def mask(device, size=3000):
    """True at every seventh place."""
    return torch.arange(size, device=device) % 7 == 0


def placed(device):
    tensor = torch.zeros(4, 6, device=device)
    tensor[1] = 2
    tensor[torch.tensor([0, -1], device=device), torch.tensor([5, 2], device=device)] = \
        torch.tensor([8.0, 9.0], device=device)
    return tensor


CASES = {
    "fill": lambda d: torch.full((3, 5), 2.5, dtype=torch.bfloat16, device=d),
    "large fill": lambda d: torch.zeros(2000000, dtype=torch.int16, device=d)[5:9],
    "arange": lambda d: torch.arange(3, 200, 4, device=d),
    "arange of floats": lambda d: torch.arange(0, 1, 0.125, device=d),
    "casts": lambda d: torch.stack([numbers(d).to(kind).double() for kind in (
        torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
        torch.bool, torch.float64)]),
    "scalars": lambda d: (numbers(d) * 3 - 1) / 4 + 1 - (2 - numbers(d)),
    "halves": lambda d: numbers(d, torch.float16) * numbers(d, torch.float16) + 0.1,
    "bfloat16": lambda d: numbers(d, torch.bfloat16) / 3 + numbers(d, torch.bfloat16),
    "broadcast": lambda d: numbers(d) + numbers(d)[:1] * numbers(d)[:, 2:3],
    "mixed types": lambda d: numbers(d) * torch.tensor([1, 2, 3, 4], device=d),
    "integers": lambda d: torch.tensor([7, -7, 9, 0], device=d) // 2 +
    torch.tensor([7, -7, 9, 0], device=d) % 4,
    "rounding": lambda d: torch.stack([numbers(d).round(), numbers(d).floor(), numbers(d).ceil(),
                                       numbers(d).trunc(), numbers(d).neg(), numbers(d).abs()]),
    "functions": lambda d: torch.stack([numbers(d).abs().sqrt(), numbers(d).exp(),
                                        numbers(d).tanh(), numbers(d).sin(), numbers(d).cos()]),
    "comparisons": lambda d: torch.stack([numbers(d) > 1, numbers(d) >= 2, numbers(d) < 1,
                                          numbers(d) <= 2, numbers(d) == 2, numbers(d) != 2]),
    "comparisons of tensors": lambda d: torch.stack([
        numbers(d) > numbers(d)[:, :1], numbers(d) == numbers(d)[:, :1]]),
    "bits": lambda d: ~mask(d, 20) & (mask(d, 20) | (torch.arange(20, device=d) > 9)) ^ mask(d, 20),
    "logical": lambda d: numbers(d).logical_and(numbers(d) > 0).logical_not(),
    "where": lambda d: torch.where(numbers(d) > 1, numbers(d), 0),
    "masked_fill": lambda d: numbers(d).masked_fill(numbers(d) > 1, -1),
    "clamp": lambda d: torch.stack([numbers(d).clamp(0, 3), numbers(d).clamp(min=0),
                                    numbers(d).clamp(max=0)]),
    "extremes": lambda d: torch.maximum(numbers(d), numbers(d)[:, :1]) +
    torch.minimum(numbers(d), numbers(d)[:, :1]),
    "transposed": lambda d: numbers(d).t().contiguous(),
    "sum": lambda d: numbers(d).sum(),
    "sum of rows": lambda d: numbers(d).sum(-1),
    "sum of columns": lambda d: numbers(d, torch.float16).sum(0),
    "sum of a mask": lambda d: mask(d).sum(),
    "long sum": lambda d: torch.arange(100000, device=d).sum(),
    "mean": lambda d: numbers(d).mean(-1),
    "any, all": lambda d: torch.stack([mask(d).any(), mask(d).all(), (numbers(d) < 99).all()]),
    "any of rows": lambda d: (numbers(d) > 6).any(-1),
    "max, min": lambda d: torch.stack([numbers(d).max(), numbers(d).min()]),
    "max of rows": lambda d: torch.cat([part.double() for part in numbers(d).max(-1)]),
    "min of columns": lambda d: torch.cat([part.double() for part in numbers(d).min(0)]),
    "argmax": lambda d: torch.cat([numbers(d).argmax(-1), numbers(d).argmin(0)]),
    "not a number": lambda d: torch.isnan(numbers(d).log()),
    "isfinite": lambda d: torch.isfinite(numbers(d) / numbers(d).clamp(min=0)),
    "isin": lambda d: torch.isin(torch.arange(9, device=d), torch.tensor([2, 5], device=d)),
    "nonzero": lambda d: mask(d).nonzero(),
    "long nonzero": lambda d: mask(d, 300000).nonzero(),
    "nonzero of two dimensions": lambda d: (numbers(d) > 1).nonzero(),
    "select": lambda d: numbers(d)[numbers(d) > 1],
    "cumsum": lambda d: torch.arange(2000, device=d).cumsum(0),
    "index": lambda d: numbers(d)[torch.tensor([1, 0, -1], device=d)],
    "index of two": lambda d: numbers(d)[torch.tensor([1, 0], device=d),
                                         torch.tensor([3, 2], device=d)],
    "index_put": placed,
    "gather": lambda d: numbers(d).gather(1, torch.tensor([[3], [1]], device=d)),
    "scatter": lambda d: numbers(d).scatter(1, torch.tensor([[3], [1]], device=d),
                                            torch.tensor([[7.0], [8.0]], device=d)),
    "cat": lambda d: torch.cat([torch.arange(8, device=d), torch.arange(8, device=d)]),
    "cat of columns": lambda d: torch.cat([numbers(d), numbers(d)[:, :3]], 1),
    "cat of three dimensions": lambda d: torch.cat(
        [torch.arange(24, device=d).view(2, 3, 4)] * 2, 1),
    "cat of slices": lambda d: torch.cat([numbers(d)[:, :1], numbers(d)[:, 2:]], 1),
    "cat of bytes": lambda d: torch.cat([mask(d, 5), mask(d, 9)]),
}


def is_alike(expected, got):
    if expected.dtype.is_floating_point:
        return expected.shape == got.shape and torch.allclose(expected, got, rtol=1e-6, atol=1e-7)
    return torch.equal(expected, got)


wrong = 0
for name, case in CASES.items():
    if len(sys.argv) > 1 and name not in sys.argv[1:]:
        continue
    expected, got = case("cpu"), case("cuda").cpu()
    if not is_alike(expected, got):
        print(f"{name}: {got} instead of {expected}")
        wrong += 1
one = torch.ones(4, 4, device="cuda")
if not torch.equal(one, torch.ones_like(one)) or str(one) != str(one.cpu()).replace(
        "]])", "]], device='cuda:0')"):
    print("equal or str:", one)
    wrong += 1
print(len(CASES), "cases,", wrong, "wrong")
