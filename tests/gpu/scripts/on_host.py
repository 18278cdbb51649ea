#!/usr/bin/env python3
"""What operations take whose operands are on host chunks, under a policy that places tensors with
the tag "host" there.

    on_host.py --seconds N [--tiny]

For each operation and each operand: the time on the device, the time with that operand on the host,
and that of reading (or for the result writing) it once there. How often an operand crosses the link
follows from the three. Times are in microseconds; "same" compares the results."""
import pathlib
import sys

import torch
from torch.nn import functional

from measured import all_until, device_us
from told import Clock, arguments, tell

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))
import spillway  # noqa: E402

MIB = 1 << 20


def host_bytes():
    return spillway.stats()["devices"][0]["host_used_bytes"]


def on_host(tensor):
    """A copy on the host, and how many bytes of it went there."""
    before = host_bytes()
    with spillway.tag("host"):
        copy = torch.empty_like(tensor)
    copy.copy_(tensor)
    return copy, host_bytes() - before


def numbers(*shape):
    generator = torch.Generator("cuda").manual_seed(1)
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, generator=generator)


def product(m, n, k):
    return ({"a": numbers(m, k), "b": numbers(k, n), "result": numbers(m, n)},
            lambda a, b, result: torch.mm(a, b, out=result))


def rows(count, call):
    return {"input": numbers(count, 1024), "result": numbers(count, 1024)}, call


def operations(tiny):
    """Name, and how to make (tensors by role, call of these); one that is called "result" is
    written."""
    count = 1024 if tiny else 50 * 1024  # 100 MiB
    size = (1024, 1024, 1024) if tiny else (8192, 3072, 768)
    weight = torch.ones(1024, device="cuda", dtype=torch.bfloat16)
    found = {
        f"product {size}": lambda: product(*size),
        "GELU": lambda: rows(count, lambda input, result:
                             torch.ops.aten.gelu.out(input, out=result)),
        "softmax": lambda: rows(count, lambda input, result:
                                torch.softmax(input, 1, out=result)),
        "layer norm": lambda: ({"input": numbers(count, 1024)}, lambda input:
                               functional.layer_norm(input, (1024,), weight, weight)),
        "rows by number": lambda: rows(count, lambda input, result: torch.index_select(
            input, 0, torch.arange(count - 1, -1, -1, device="cuda"), out=result)),
        "add in place": lambda: ({"result": numbers(count, 1024)},
                                 lambda result: result.add_(0)),
        "sum": lambda: ({"input": numbers(count, 1024)}, lambda input: input.sum())
    }
    for side in () if tiny else (4096,):
        found[f"product {(side, side, side)}"] = lambda side=side: product(side, side, side)
    return found


def operation(name, make):
    """Tells of one operation, with each of its operands on the host and with all of them."""
    tensors, call = make()
    expected = call(**tensors).clone()
    alone = device_us(lambda: call(**tensors))
    large = [role for role, tensor in tensors.items()
             if tensor.numel() * tensor.element_size() >= MIB]
    for roles in [[role] for role in large] + ([large] if len(large) > 1 else []):
        tell("operations", operation=name, on_host=roles, device_us=alone,
             bytes=sum(tensors[role].numel() * 2 for role in roles),
             **with_roles(tensors, call, roles, expected))


def with_roles(tensors, call, roles, expected):
    """The operation with the tensors of these roles on the host."""
    torch.cuda.empty_cache()  # what was there before is not counted as used
    moved = {role: on_host(tensors[role]) for role in roles}
    mixed = tensors | {role: copy for role, (copy, _) in moved.items()}
    same = bool((call(**mixed) == expected).all())
    copy, other = mixed[roles[0]], torch.empty_like(tensors[roles[0]])
    once = (lambda: copy.copy_(other)) if roles == ["result"] else (lambda: other.copy_(copy))
    return {"placed": sum(placed for _, placed in moved.values()), "same": same,
            "host_us": device_us(lambda: call(**mixed)), "once_us": device_us(once)}


def main():
    args = arguments(__doc__)
    torch.zeros(1, device="cuda")
    all_until(Clock(args.seconds), operation, operations(args.tiny).items())


if __name__ == "__main__":
    main()
