#!/usr/bin/env python3
"""Trains tests/torch/gpt2_like.py, and prints what each step took and did as JSON.

    steps.py --seconds N [OPTION OF gpt2_like.py ...]

Steps that begin N seconds after the first one are left out. Milliseconds: "text" is that in which
the batch is made up, "step" the rest. The counters are spillway's and those of PyTorch's allocator,
each as it grew in the step, or before and in the first; "driver" is spillway's own calls of the
driver by name."""
import argparse
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(SOURCE / folder) for folder in ("tests/gpu/scripts", "tests/torch", "python")]

import gpt2_like  # noqa: E402
import spillway  # noqa: E402
import torch  # noqa: E402
from told import tell  # noqa: E402

GROWING = ("spilled_bytes", "promoted_bytes", "placed_bytes", "moves", "moves_at_work",
           "second_copies", "stall_ns", "closed_ns", "misses", "steals", "host_waits")
OF_TORCH = ("num_device_alloc", "num_device_free", "num_alloc_retries")


def read():
    """(counters, spillway's driver calls, bytes in use on the host) so far."""
    allocator = torch.cuda.memory_stats()
    found = {key: allocator.get(key, 0) for key in OF_TORCH}
    devices = spillway.stats()["devices"] if spillway.loaded() else []
    if not devices:
        return found, {}, 0
    device = devices[0]
    return (found | {key: device[key] for key in GROWING}, device["driver_calls"],
            device["host_used_bytes"])


def grown(now, before):
    """What has changed, by key."""
    return {key: value - before.get(key, 0) for key, value in now.items()
            if value != before.get(key, 0)}


class Steps:
    """Tells each step, and whether there is time for another."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.count = 0
        self.last = {}, {}, 0

    def __call__(self, length, text, rest):
        self.count += 1
        before, self.last = self.last, read()
        counters, calls = (grown(self.last[i], before[i]) for i in (0, 1))
        # Bytes that left and did not come back: used on the host, freed there, or both.
        stayed = counters.get("spilled_bytes", 0) - counters.get("promoted_bytes", 0)
        tell("steps", step=self.count, length=length, text_ms=round(text * 1e3, 2),
             step_ms=round(rest * 1e3, 2), **counters,
             freed_on_host_bytes=stayed - (self.last[2] - before[2]), driver=calls)
        self.seconds -= text + rest
        return self.seconds > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    own, rest = parser.parse_known_args()
    gpt2_like.train(gpt2_like.parse(rest), Steps(own.seconds))


if __name__ == "__main__":
    main()
