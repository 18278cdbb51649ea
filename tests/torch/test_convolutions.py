#!/usr/bin/env python3
"""The convolutions of a ResNet go through cuDNN, all of them, under spillway as without."""
import collections
import re
import sys
import unittest

import wheel
from running import HERE, Run

# The configuration that hf_models.py builds and its number of steps; images need no gradient.
LAYERS = 22
STEPS = 4
CALLS = {"convolution_forward": LAYERS * STEPS, "convolution_backward_filter": LAYERS * STEPS,
         "convolution_backward_data": (LAYERS - 1) * STEPS, "batch_norm": LAYERS * STEPS,
         "batch_norm_backward": LAYERS * STEPS}


class Convolutions(unittest.TestCase):
    interpreter = None

    def count(self, *flags):
        run = Run([self.interpreter, str(HERE / "hf_models.py"), "resnet"], flags, log=True)
        self.assertEqual(run.status, 0, run.stderr)
        names = [re.search(r"^\d+ \d+ \d+ cuLaunchKernel = 0 kernel=spw_touch_(\w+)", line)
                 for line in run.log]
        return collections.Counter(name[1] for name in names if name)

    def test_calls(self):
        for flags in (["--no-pool"], [], ["--mode", "segment"]):
            with self.subTest(flags=flags):
                calls = self.count(*flags)
                self.assertEqual({name: calls[name] for name in CALLS}, CALLS)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Convolutions))
