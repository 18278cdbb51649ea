#!/usr/bin/env python3
"""Small operations on the simulated GPU, each beside the same on the CPU. Prints what differs."""
import sys

import torch


def numbers(device, dtype=torch.float32):
    return torch.tensor([[3.0, -1.5, 2.0, 0.0], [0.25, 5.0, -4.0, 7.0]], dtype=dtype, device=device)


def mask(device, size=3000):
    """True at every seventh place."""
    return torch.arange(size, device=device) % 7 == 0


def labels(device, size=50):
    """Numbers from 0 to 12, none of which is rare."""
    return torch.arange(size, device=device) * 7919 % 13


def doubles(*tensors):
    return torch.cat([tensor.double().flatten() for tensor in tensors])


def added(device):
    return torch.zeros(4, device=device).scatter_add(
        0, torch.tensor([0, 2, 0], device=device), torch.tensor([1.0, 2.0, 3.0], device=device))


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
    "where of other sizes": lambda d: doubles(*(
        torch.where(numbers(d) > 1, numbers(d).abs().to(kind), numbers(d).abs().to(kind) + 1)
        for kind in (torch.uint8, torch.int16, torch.bfloat16, torch.int64, torch.float64))),
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
    "aminmax": lambda d: doubles(*(part for kind in (torch.float32, torch.float16, torch.int64)
                                   for part in numbers(d, kind).aminmax())),
    "aminmax of rows": lambda d: doubles(*numbers(d).aminmax(dim=-1), *numbers(d).aminmax(dim=0)),
    "aminmax of a mask": lambda d: doubles(*mask(d, 20).view(4, 5).aminmax(dim=1)),
    "aminmax of what is no number": lambda d: torch.isnan(
        doubles(*numbers(d).log().aminmax(dim=0))),
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
    "powers": lambda d: torch.stack([numbers(d)**2, numbers(d)**3, numbers(d)**-2,
                                     numbers(d).abs()**numbers(d)]),
    "powers of integers": lambda d: labels(d)**2 + labels(d)**torch.tensor(3, device=d),
    "power of a scalar": lambda d: 10000.0**(torch.arange(0, 8, 2, device=d) / 8),
    "more functions": lambda d: torch.stack([
        numbers(d).sigmoid(), numbers(d).sign(), numbers(d).abs().log1p(), numbers(d).expm1(),
        numbers(d).abs().log2(), numbers(d).erf(), numbers(d).fmod(2),
        torch.nn.functional.silu(numbers(d)), numbers(d).atan2(numbers(d)[:1]),
        torch.nn.functional.mse_loss(numbers(d), numbers(d) * 2, reduction="none")]),
    "shifts": lambda d: torch.stack([labels(d) << 2, labels(d) >> 1]),
    "sort": lambda d: doubles(*numbers(d).sort(-1), *numbers(d).sort(0, descending=True)),
    "sort of equal ones": lambda d: doubles(*labels(d).sort(stable=True)),
    "sort of rows": lambda d: doubles(*labels(d, 600).view(2, 300).sort(stable=True)),
    "long sort": lambda d: doubles(*labels(d, 5000).sort(stable=True),
                                   *labels(d, 5000).sort(stable=True, descending=True)),
    "argsort of halves": lambda d: numbers(d, torch.float16).flatten()[1:].argsort(),
    "topk": lambda d: doubles(*numbers(d).topk(2), *numbers(d).topk(1, 0, largest=False)),
    "topk of a long row": lambda d: (torch.arange(9000, device=d) * 7919 % 9001).topk(5).values,
    "unique": lambda d: doubles(*labels(d).unique(return_inverse=True, return_counts=True)),
    "unique of floats": lambda d: numbers(d).unique(),
    "unique of many": lambda d: doubles(labels(d, 20000).unique(), labels(d, 9000).int().unique()),
    "unique_consecutive": lambda d: doubles(
        *(labels(d) // 5).unique_consecutive(return_counts=True)),
    "bincount": lambda d: labels(d).bincount(minlength=20),
    "histc": lambda d: numbers(d).histc(4),
    "one_hot": lambda d: torch.nn.functional.one_hot(labels(d)),
    "scatter of a value": lambda d: numbers(d).scatter(1, torch.tensor([[3], [1]], device=d), 9.0),
    "scatter_add": added,
    "repeat_interleave": lambda d: labels(d, 3).repeat_interleave(
        torch.tensor([1, 0, 3], device=d)),
    "searchsorted": lambda d: torch.stack([
        torch.searchsorted(torch.tensor([1, 3, 5, 7], device=d), labels(d), right=right)
        for right in (False, True)]),
    "bucketize": lambda d: torch.bucketize(numbers(d), torch.tensor([0.0, 1.0, 2.0], device=d)),
    "triangles": lambda d: torch.stack([numbers(d).tril(), numbers(d).triu(1)]),
    "mask of a triangle": lambda d: torch.ones(5, 5, dtype=torch.bool, device=d).triu(1),
    "roll": lambda d: torch.stack([numbers(d).roll(1), numbers(d).roll(3, 1)]),
    "cumsum of rows": lambda d: numbers(d).cumsum(-1),
    "cumsum of columns": lambda d: labels(d, 48).view(6, 8).cumsum(0),
    "cumprod": lambda d: numbers(d).cumprod(-1),
    "index_select": lambda d: numbers(d).index_select(1, torch.tensor([3, 1], device=d)),
    "embedding": lambda d: torch.nn.functional.embedding(labels(d, 9) % 2, numbers(d)),
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
