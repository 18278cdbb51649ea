#!/usr/bin/env python3
"""Run a training script of corpus.py on a device of 60 % of what it needs, in the modes in which
spillway serves memory: it ends well, and PyTorch counts the same as with memory in plenty.

    test_pressure.py NAME...

Exits with 77 when there is no PyTorch that will do.
"""
import sys
import unittest

import wheel
from corpus import SCRIPTS
from running import HERE, Run, steps_of

SHARE = 0.6
# For code and graphs, which are not the pool's. On a real device the default limit leaves it; what
# PyTorch allocates chunk by chunk itself can be placed on the host, but not moved out of the way.
ROOM = 64 << 20
# What NCCL's communicators may take beyond the limit where nothing on the device can move.
NCCL = 8 << 20
MODES = {
    "tensor": (["--mode", "tensor"], {}),
    "segment": (["--mode", "segment"], {}),
    "expandable": (["--mode", "segment"], {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
}
# Scripts, and modes of theirs, that cannot run on so little, and why.
EXEMPT = {
    ("monitoring", "tensor"): "lets itself have 90 % of the device, less than it needs",
    ("monitoring", "segment"): "lets itself have 90 % of the device, less than it needs",
    ("monitoring", "expandable"): "lets itself have 90 % of the device, less than it needs",
}


class Pressure(unittest.TestCase):
    interpreter = None
    names = []

    def run_script(self, name, mode, *more):
        row = SCRIPTS[name]
        launcher = [self.interpreter]
        if row.processes > 1:
            launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                         str(row.processes)]
        flags, settings = MODES[mode]
        run = Run([*launcher, *steps_of(*row.command)],
                  ["--devices", str(row.processes), "--seed", "1", *flags, *more], settings)
        self.assertEqual(run.status, 0, run.stderr)
        return run

    def devices(self, run):
        return {rank: stats["devices"][int(rank)] for rank, stats in run.stats.items()}

    def compare(self, mode, step, plain):
        """PyTorch's own allocator may cut its segments otherwise, and then rounds otherwise. It
        counts what was freed and waits for another stream as still requested."""
        if mode == "tensor":
            self.assertEqual(step["allocated"], plain["allocated"])
            return
        self.assertEqual(step["tensors"], plain["tensors"])
        if all(figures["active"] == figures["allocated"] for figures in (step, plain)):
            self.assertEqual(step["requested"], plain["requested"])

    def check(self, name, mode):
        plenty = self.run_script(name, mode)
        peak = max(device["live_peak_bytes"] for device in self.devices(plenty).values())
        run = self.run_script(name, mode, "--limit", str(int(SHARE * peak)), "--memory",
                              str(int(SHARE * peak) + ROOM))
        self.assertEqual(len(run.steps), SCRIPTS[name].processes)
        for rank, device in self.devices(run).items():
            print(f"{name}, {mode}, rank {rank}: {SHARE * peak / 2**20:.0f} of {peak / 2**20:.0f} "
                  f"MiB: {device['host_peak_bytes'] / 2**20:.0f} MiB on the host, "
                  f"{device['moves']} moves, {device['abandoned_moves']} abandoned", flush=True)
            if mode == "tensor": # elsewhere PyTorch may do with less of a cache
                self.assertGreater(device["host_peak_bytes"], 0)
            beyond = NCCL if SCRIPTS[name].processes > 1 and mode == "expandable" else 0
            self.assertLessEqual(device["committed_peak_bytes"], device["limit_bytes"] + beyond)
            # With a process group threads let go of their tensors at any time.
            if SCRIPTS[name].processes == 1:
                self.assertEqual(len(run.steps[rank]), len(plenty.steps[rank]))
                for steps in zip(run.steps[rank], plenty.steps[rank]):
                    self.compare(mode, *steps)

    def test_convolution_after_spilling(self):
        """PyTorch asks how much memory is free before it compares algorithms, and asserts that the
        answer and what it holds are not more than there is."""
        if len(self.names) == 1:
            self.skipTest("not for a single script")
        for mode, (flags, settings) in MODES.items():
            with self.subTest(mode=mode):
                run = Run([self.interpreter, str(HERE / "convolution_spilled.py")],
                          ["--limit", str(256 << 20), "--memory",
                           str((256 << 20) + ROOM), *flags], settings)
                self.assertEqual(run.status, 0, run.stderr)
                self.assertEqual(run.unexpected(), [])
                device = run.stats["0"]["devices"][0]
                self.assertGreater(device["host_peak_bytes"], 64 << 20)

    def test_scripts(self):
        for name in self.names:
            for mode in MODES:
                with self.subTest(name=name, mode=mode):
                    reason = EXEMPT.get((name, mode))
                    if reason is not None:
                        print(f"{name}, {mode}: exempt: {reason}")
                        continue
                    self.check(name, mode)


if __name__ == "__main__":
    Pressure.names = sys.argv[1:]
    unknown = set(Pressure.names) - set(SCRIPTS)
    if unknown:
        sys.exit(f"not in corpus.py: {unknown}")
    sys.argv[1:] = []
    sys.exit(wheel.run_tests(Pressure))
