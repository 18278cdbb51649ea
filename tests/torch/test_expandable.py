#!/usr/bin/env python3
"""`expandable_segments:True` in tensor mode, for sharded training: what it reserves."""
import json
import sys
import unittest

import wheel
from running import HERE, Run

EXPANDABLE = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
# Of what PyTorch's own expandable segments reserve: the pool keeps spare chunks (SPILLWAY_GROWTH).
MORE = 1.05


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


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Expandable))
