#!/usr/bin/env python3
"""Looks for the largest batch that fits, as accelerate does, and prints it in JSON.

With --words it prints the text of PyTorch's own error instead."""
import json
import sys

import torch
from accelerate.utils import find_executable_batch_size

BYTES = 500 << 20  # for each element of the batch


@find_executable_batch_size(starting_batch_size=64)
def largest(batch_size):
    torch.empty(batch_size * BYTES, dtype=torch.uint8, device="cuda")
    return batch_size


if "--words" in sys.argv:
    kept = torch.ones(5 << 28, dtype=torch.uint8, device="cuda")
    try:
        torch.empty(64 * BYTES, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        print(json.dumps([error.args, isinstance(error, RuntimeError)]))
else:
    print(json.dumps(largest()))
