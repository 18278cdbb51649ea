#!/usr/bin/env python3
"""How long kernels take on the device, for a model of their costs: medians, by CUDA events.

    kernel_times.py --seconds N [--tiny]

Products by kind and size, convolutions, attention, operations by element and by row; and how long
Python takes to submit calls. Times are in microseconds."""
import itertools

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from measured import SHORT, all_until, device_us, submit_us
from told import Clock, arguments, tell

# m, n, k: squares, layers of models by tokens, tall and flat ones, one token.
PRODUCTS = ((128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024),
            (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (1024, 768, 768),
            (8192, 768, 768), (8192, 3072, 768), (8192, 768, 3072), (8192, 50304, 768),
            (768, 3072, 8192), (4096, 11008, 4096), (4096, 4096, 11008), (1, 4096, 4096),
            (16, 4096, 4096), (256, 4096, 4096), (64, 64, 65536), (65536, 64, 64))
KINDS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16,
         "fp16": torch.float16}
# batch, in, out, size, kernel, stride, groups
CONVOLUTIONS = ((32, 3, 64, 224, 7, 2, 1), (32, 64, 64, 56, 3, 1, 1), (32, 256, 256, 14, 3, 1, 1),
                (32, 512, 512, 7, 3, 1, 1), (32, 256, 64, 56, 1, 1, 1), (32, 96, 96, 56, 7, 1, 96),
                (32, 3, 768, 224, 16, 16, 1), (2, 256, 256, 256, 3, 1, 1))
# batch, heads, length, width
ATTENTION = ((8, 12, 1024, 64), (4, 32, 2048, 64), (2, 32, 4096, 128), (32, 12, 128, 64))
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
            "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}
ROW = 1024  # elements of a row
ELEMENTS = tuple(1 << power for power in range(12, 29, 2))


def product(kind, m, n, k):
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    a = torch.zeros(m, k, device="cuda", dtype=KINDS[kind])
    b = torch.zeros(k, n, device="cuda", dtype=KINDS[kind])
    out = torch.empty(m, n, device="cuda", dtype=KINDS[kind])
    tell("products", kind=kind, m=m, n=n, k=k, us=device_us(lambda: torch.mm(a, b, out=out)))


def convolution(dtype, last, batch, before, after, size, kernel, stride, groups):
    form = torch.channels_last if last else torch.contiguous_format
    x = torch.zeros(batch, before, size, size, device="cuda", dtype=dtype).to(memory_format=form)
    w = torch.zeros(after, before // groups, kernel, kernel, device="cuda", dtype=dtype)
    w = w.to(memory_format=form)
    padding = kernel // 2 if kernel < 16 else 0
    y = functional.conv2d(x, w, None, stride, padding, 1, groups)
    back = lambda: torch.ops.aten.convolution_backward(  # noqa: E731
        y, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups,
        [True, True, False])
    tell("convolutions", dtype=SHORT[dtype], last=last, batch=batch, before=before, after=after,
         size=size, kernel=kernel, stride=stride, groups=groups,
         us=device_us(lambda: functional.conv2d(x, w, None, stride, padding, 1, groups)),
         backward_us=device_us(back))


def attention(backend, causal, batch, heads, length, wide):
    query, key, value = (torch.zeros(batch, heads, length, wide, device="cuda",
                                     dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    run = lambda: functional.scaled_dot_product_attention(  # noqa: E731
        query, key, value, is_causal=causal)
    with sdpa_kernel(BACKENDS[backend]):
        y = run()
        gradient = torch.zeros_like(y)
        tell("attention", backend=backend, causal=causal, batch=batch, heads=heads, length=length,
             wide=wide, us=device_us(run),
             backward_us=device_us(lambda: torch.autograd.grad(y, (query, key, value), gradient,
                                                               retain_graph=True)))


def elements(dtype, count):
    """Operations on so many elements; bytes are those read and written."""
    x = torch.zeros(count // ROW, ROW, device="cuda", dtype=dtype)
    y, out = torch.zeros_like(x), torch.empty_like(x)
    weight = torch.ones(ROW, device="cuda", dtype=dtype)
    one, size = x.numel() * x.element_size(), x.element_size()
    calls = {"fill": (one, lambda: out.zero_()), "copy": (2 * one, lambda: out.copy_(x)),
             "add": (3 * one, lambda: torch.add(x, y, out=out)),
             "gelu": (2 * one, lambda: torch.ops.aten.gelu.out(x, out=out)),
             "sum": (one, lambda: x.sum()), "sum of rows": (one, lambda: x.sum(1)),
             "softmax": (2 * one, lambda: torch.softmax(x, 1)),
             "layer norm": (2 * one, lambda: functional.layer_norm(x, (ROW,), weight, weight)),
             "to fp32": (one + one // size * 4, lambda: x.to(torch.float32, copy=True))}
    for name, (moved, call) in calls.items():
        tell("elements", operation=name, dtype=SHORT[dtype], count=count, bytes=moved,
             us=device_us(call))


def submissions():
    """What a call costs the CPU, from Python."""
    x = torch.zeros(1024, device="cuda")
    a = torch.zeros(64, 64, device="cuda")
    b = torch.zeros(64, 64, device="cuda", requires_grad=True)
    event = torch.cuda.Event()
    calls = {"view": lambda: x.view(32, 32), "empty": lambda: torch.empty(1024, device="cuda"),
             "add_": lambda: x.add_(1), "add": lambda: x + 1, "product": lambda: a @ a,
             "softmax": lambda: torch.softmax(a, 1), "event": event.record,
             "forward and backward": lambda: (a @ b).sum().backward()}
    for name, call in calls.items():
        call()
        tell("submissions", call=name, us=submit_us(call, 20 if name.startswith("for") else 200))


def main():
    args = arguments(__doc__)
    clock = Clock(args.seconds)

    def some(cases):
        return list(cases)[:1] if args.tiny else cases
    submissions()
    all_until(clock.part(args.seconds * 0.4), product, some(
        (kind, *size) for size in PRODUCTS for kind in KINDS))
    all_until(clock.part(args.seconds * 0.2), elements, some(
        (dtype, count) for count in ELEMENTS for dtype in (torch.bfloat16, torch.float32)))
    all_until(clock.part(args.seconds * 0.2), attention, some(
        (backend, causal, *shape) for shape, backend, causal in itertools.product(
            ATTENTION, BACKENDS, (True, False))))
    all_until(clock, convolution, some(
        (dtype, last, *shape) for shape, dtype, last in itertools.product(
            CONVOLUTIONS, (torch.float32, torch.bfloat16), (False, True))))


if __name__ == "__main__":
    main()
