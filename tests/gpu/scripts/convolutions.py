#!/usr/bin/env python3
"""Memory and engines of cuDNN's convolutions as PyTorch runs them.

    convolutions.py --seconds N [--tiny] [--benchmark] [--asked]

For the convolutions of programs of tests/torch, and for a grid of shapes, kinds and layouts: the
bytes that a direction takes at its peak beyond its result, and with --asked the engines that
PyTorch makes plans of, in their order, and cuDNN's description of the device. --benchmark lets
PyTorch choose by time; that is a process of its own, since PyTorch keeps the plan of a shape."""
import contextlib
import itertools
import json
import random

import torch
from torch.nn import functional

import cudnn_log
from measured import SHORT, all_until, peak, refused
from told import Clock, arguments, tell

# batch, in, out, size, kernel, stride, groups, dilation
CONVOLUTION = ((8, 3, 16, 64, 7, 2, 1, 1), (8, 16, 32, 16, 3, 1, 1, 1), (8, 32, 32, 16, 3, 1, 1, 1),
               (8, 16, 32, 16, 1, 1, 1, 1), (8, 32, 64, 16, 3, 2, 1, 1), (8, 64, 64, 8, 3, 1, 1, 1),
               (8, 32, 64, 16, 1, 2, 1, 1))
RESNET = ((4, 3, 16, 64, 7, 2, 1, 1), (4, 16, 8, 16, 1, 1, 1, 1), (4, 8, 8, 16, 3, 1, 1, 1),
          (4, 8, 32, 16, 1, 1, 1, 1), (4, 16, 32, 16, 1, 1, 1, 1), (4, 32, 8, 16, 1, 1, 1, 1),
          (4, 32, 16, 16, 1, 1, 1, 1), (4, 16, 16, 16, 3, 2, 1, 1), (4, 16, 64, 8, 1, 1, 1, 1),
          (4, 32, 64, 16, 1, 2, 1, 1), (4, 64, 16, 8, 1, 1, 1, 1), (4, 16, 16, 8, 3, 1, 1, 1),
          (4, 64, 32, 8, 1, 1, 1, 1), (4, 32, 32, 8, 3, 2, 1, 1), (4, 32, 128, 4, 1, 1, 1, 1),
          (4, 64, 128, 8, 1, 2, 1, 1), (4, 128, 32, 4, 1, 1, 1, 1), (4, 32, 32, 4, 3, 1, 1, 1))
# Stems, 3x3, 1x1, depthwise, grouped, dilated, patches, the decoder of an image, many small images.
GRID = ((32, 3, 64, 224, 7, 2, 1, 1), (32, 64, 64, 56, 3, 1, 1, 1), (32, 256, 256, 14, 3, 1, 1, 1),
        (32, 512, 512, 7, 3, 1, 1, 1), (32, 256, 64, 56, 1, 1, 1, 1),
        (32, 512, 1024, 14, 1, 2, 1, 1), (32, 96, 96, 56, 3, 1, 96, 1),
        (32, 96, 96, 56, 7, 1, 96, 1), (32, 240, 240, 28, 5, 2, 240, 1),
        (32, 128, 128, 28, 3, 1, 32, 1), (8, 256, 256, 64, 3, 1, 1, 4),
        (32, 3, 768, 224, 16, 16, 1, 1), (8, 3, 64, 64, 7, 2, 1, 1), (8, 64, 64, 8, 3, 1, 1, 1),
        (2, 256, 256, 512, 3, 1, 1, 1), (300, 32, 32, 43, 3, 1, 32, 1),
        (300, 72, 24, 22, 1, 1, 1, 1), (64, 64, 64, 86, 3, 1, 1, 1))
PROGRAMS = {"convolution": CONVOLUTION, "hf_resnet": RESNET}  # by their names in the corpus


def directions(shape, dtype, last):
    """The three directions of a convolution, as calls of no arguments; yields (name, call)."""
    batch, before, after, size, kernel, stride, groups, dilation = shape
    form = torch.channels_last if last else torch.contiguous_format
    x = torch.zeros(batch, before, size, size, device="cuda", dtype=dtype)
    w = torch.zeros(after, before // groups, kernel, kernel, device="cuda", dtype=dtype)
    x, w = (tensor.to(memory_format=form) for tensor in (x, w))
    padding = dilation * (kernel // 2) if kernel < 16 else 0
    more = ((stride, stride), (padding, padding), (dilation, dilation))
    yield "forward", lambda: functional.conv2d(x, w, None, *more, groups)
    size = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    gradient = torch.zeros(batch, after, size, size, device="cuda",
                           dtype=dtype).to(memory_format=form)
    for name, mask in (("data", [True, False, False]), ("filter", [False, True, False])):
        yield name, lambda mask=mask: torch.ops.aten.convolution_backward(
            gradient, x, w, None, *more, False, [0, 0], groups, mask)


def measure(source, shape, dtype, last, asked):
    """Tells of one convolution, in one kind and layout: (bytes or an error, engines) by
    direction."""
    found = {}
    for name, call in directions(shape, dtype, last):
        with cudnn_log.engines() if asked else contextlib.nullcontext([]) as engines:
            try:
                beyond = peak(call)[0]
            except torch.AcceleratorError:
                raise
            except RuntimeError as error:
                beyond = refused(error)
        found[name] = beyond, engines
    tell("convolutions", of=source, shape=shape, dtype=SHORT[dtype], last=last,
         benchmark=torch.backends.cudnn.benchmark, **found)


def all_of_them(tiny):
    """(source, shape, dtype, channels last): those of the programs, as they run them, then a grid
    in an order of which each part is a sample."""
    for source, shapes in PROGRAMS.items():
        yield from ((source, shape, torch.float32, False) for shape in shapes[:1 if tiny else None])
    rest = list(itertools.product(GRID[-1:] if tiny else GRID, SHORT, (False, True)))
    random.Random(1).shuffle(rest)
    yield from (("grid", *entry) for entry in rest[:1 if tiny else None])


def describe():
    """What no later question needs a device for."""
    try:
        tell("device", cudnn=torch.backends.cudnn.version(), torch=torch.__version__,
             description=json.loads(cudnn_log.description()))
    except (RuntimeError, ValueError, OSError, AttributeError) as error:
        tell("errors", at="description of the device", error=refused(error))


def main():
    args = arguments(__doc__, "--benchmark", "--asked")
    clock = Clock(args.seconds)
    torch.zeros(1, device="cuda")
    if args.asked:
        describe()
    torch.backends.cudnn.benchmark = args.benchmark
    all_until(clock, measure, ((*entry, args.asked) for entry in all_of_them(args.tiny)))


if __name__ == "__main__":
    main()
