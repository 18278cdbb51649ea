#!/usr/bin/env python3
"""`expandable_segments:True`: what is reserved in tensor mode, with or without it, for sharded
training, and what happens in segment mode where its segments end."""
import json
import sys
import unittest

import wheel
from running import HERE, Run

EXPANDABLE = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
# Of what PyTorch's own expandable segments reserve: the pool keeps spare chunks (SPILLWAY_GROWTH).
MORE = 1.05

# Tensors on a device of 8 GiB: PyTorch reserves 9 GiB of addresses for a segment. Afterwards all is
# as before.
BEYOND = """
import torch
def attempt(gib):
    try:
        tensor = torch.empty(int(gib * 2**30), dtype=torch.uint8, device="cuda")
        return "served"
    except torch.OutOfMemoryError:
        return "out of memory"
print([attempt(gib) for gib in (8.5, 9.5, 12, 800000000, 8.5, 1)])
torch.cuda.empty_cache()
kept = [torch.empty(256 << 20, dtype=torch.uint8, device="cuda") for _ in range(40)]
print(len(kept), torch.cuda.memory_allocated() >> 20)
"""


class Expandable(unittest.TestCase):
    interpreter = None

    def reserved(self, flags=(), settings=None):
        run = Run([self.interpreter, str(HERE / "sharded_shape.py")], flags, settings)
        self.assertEqual(run.status, 0, run.stderr)
        return json.loads(run.stdout)["reserved"], run

    def test_reserves_no_more(self):
        plain, _ = self.reserved(["--no-pool"])
        plain_expandable, _ = self.reserved(["--no-pool"], EXPANDABLE)
        unset, _ = self.reserved()
        ours, run = self.reserved(settings=EXPANDABLE)
        print(f"reserved: plain {plain}, with the setting {plain_expandable}; under spillway "
              f"{unset}, with the setting {ours}", flush=True)
        self.assertEqual(run.stats["0"]["mode"], "tensor")
        self.assertLessEqual(ours, unset)
        self.assertLess(ours, plain)
        self.assertLessEqual(ours, plain_expandable * MORE)

    def test_a_tensor_larger_than_a_segment(self):
        """PyTorch relies on the device to be full before a segment is; it dies when it is not."""
        run = Run([self.interpreter, "-c", BEYOND], ["--memory", "8GiB", "--mode", "segment"],
                  EXPANDABLE)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.stdout.splitlines(), [
            "['served', 'out of memory', 'out of memory', 'out of memory', 'served', 'served']",
            "40 10240"])
        if "out of memory on device 0" in run.stderr:  # PyTorch 2.15 does not ask that far
            self.assertIn("the addresses that were reserved for it are used up", run.stderr)
        device = run.stats["0"]["devices"][0]
        self.assertGreaterEqual(device["host_peak_bytes"], 2 << 30)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Expandable))
