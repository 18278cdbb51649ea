#!/usr/bin/env python3
"""Run a training script of corpus.py in several modes, and compare what PyTorch reports.

    test_script.py [--gpu] [--seeds N,...] [--every-mode] NAME

What the program has asked for must be the same in each mode, to the byte. Of several processes,
which torchrun starts, each has a device of its own, and there the threads that watch over NCCL let
go of their tensors at any time, in a plain run too: then both figures are printed. What Triton
compiles in a first run is kept for those that are compared. With --seeds the modes in which
spillway serves memory are run once for each seed of the simulated GPU's delays, else with the
first. --every-mode runs the others too, as do scripts of which corpus.py says so. With --gpu it is
this machine's GPU instead of the simulated one, and every mode. Exits with 77 when there is no
PyTorch that will do.
"""
import argparse
import os
import sys
import tempfile
import unittest

import running
import wheel
from corpus import SCRIPTS
from running import Run, steps_of

EXPANDABLE = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
# The strict answer of the simulated driver: what spillway does beside a capture must not break it.
STRICT = ["--capture-vmm", "unsafe"]
# Of the simulated H100, and how much the arguments of a kernel take that are copied to measure it.
L2_CACHE = 50 << 20
COPIES = 4 << 20


# A process group has threads that free scalars late, each a block of 512 bytes.
SCALARS = 2 * 512


def bounds(bare, figure, late):
    """Between what this figure must lie, given those of the plain run at that step: PyTorch's cache
    rounds some blocks up by more than the pool does. Threads may free so many bytes late."""
    if figure == "allocated_peak":
        return min(bare["requested_peak"], bare["allocated_peak"]), bare["allocated_peak"] + late
    # Memory that was freed and waits for another stream still counts as active and requested.
    waiting = bare["active"] - bare["allocated"]
    return bare["requested"] - waiting, bare["allocated"]


class Script(unittest.TestCase):
    command = []
    processes = 1
    late = False
    seeds = ["1"]
    every_mode = False
    pool_flags = []
    plain = {}         # the steps of the plain run, by rank
    plain_lines = []   # what it wrote to stderr

    @classmethod
    def setUpClass(cls):
        run = cls.plain_run()
        cls.plain = run.steps
        cls.plain_lines = run.unexpected()

    @classmethod
    def plain_run(cls):
        run = Run(cls.command, [*cls.devices(), "--no-pool", "--seed", "1"])
        if run.status != 0:
            raise AssertionError(f"plain run: status {run.status}\n{run.stderr}")
        return run

    @classmethod
    def devices(cls):
        return ["--devices", str(cls.processes)]

    def run_script(self, *flags, **settings):
        run = Run(self.command, [*self.devices(), *flags], settings)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual([line for line in run.unexpected() if line not in self.plain_lines], [])
        self.assertEqual(len(run.steps), self.processes)
        for rank, steps in run.steps.items():
            self.assertGreater(len(steps), 1)
            self.assertEqual(len(steps), len(self.plain[rank]))
            if not running.on_gpu:
                self.report_launches(steps[-1]["launches"], flags)
        return run

    def report_launches(self, launches, flags):
        count = sum(launches.values())
        checked = count - launches["unknown"] - launches["structs"]
        sources = ", ".join(f"{name} {number}" for name, number in launches.items())
        print(f"{' '.join(flags)}: addresses checked in {checked} of {count} launches "
              f"({checked * 100 // count} %: {sources})")
        self.assertGreater(checked, 0)
        self.assertEqual(launches["unknown"], 0)

    def assert_mode(self, run, mode):
        self.assertEqual([stats["mode"] for stats in run.stats.values()], [mode] * self.processes)

    def compared(self, steps):
        """With the process group its threads end, and let go of their tensors at any time."""
        return steps[:-1] if self.processes > 1 else steps

    def assert_between(self, plain, ours, figure):
        for number, (bare, step) in enumerate(zip(plain, self.compared(ours)), start=1):
            least, most = bounds(bare, figure, SCALARS if self.processes > 1 else 0)
            if self.late:
                print(f"exempt: step {number}: {figure} {step[figure]}, plain {bare[figure]}")
                continue
            with self.subTest(figure=figure, step=number):
                self.assertGreaterEqual(step[figure], least)
                self.assertLessEqual(step[figure], most)

    def check_tensor_mode(self, seed, *flags, **settings):
        run = self.run_script(*flags, *self.pool_flags, "--seed", seed, **settings)
        self.assert_mode(run, "tensor")
        for rank, steps in run.steps.items():
            self.assert_between(self.plain[rank], steps, "allocated")
            self.assert_between(self.plain[rank], steps, "allocated_peak")
            for number, step in enumerate(steps, start=1):
                with self.subTest(rank=rank, step=number):
                    # Of the host's memory, what is spare does not count.
                    self.assertGreaterEqual(step["reserved"], step["committed"])
                    self.assertLessEqual(step["reserved"], step["committed"] + step["host"])
            device = run.stats[rank]["devices"][int(rank)]
            self.assertEqual(steps[-1]["reserved"],
                             device["committed_bytes"] + device["host_used_bytes"])
        self.check_requests(run)

    def check_own_allocator(self, mode, *flags, **settings):
        run = self.run_script(*flags, **settings)
        if mode is not None:
            self.assert_mode(run, mode)
        self.check_requests(run)

    def check_requests(self, run):
        """PyTorch must have been asked for the same as in the plain run."""
        if self.processes > 1:
            return  # a thread of gloo may still hold a few bytes
        for figure in ("requested", "blocks"):
            self.assertEqual([step[figure] for step in run.steps["0"]],
                             [step[figure] for step in self.plain["0"]])

    def test_tensor(self):
        for seed in self.seeds:
            with self.subTest(seed=seed):
                self.check_tensor_mode(seed, *STRICT)

    def test_segment(self):
        for seed in self.seeds:
            with self.subTest(seed=seed):
                self.check_own_allocator("segment", "--mode", "segment", *self.pool_flags,
                                         "--seed", seed)

    def test_tensor_beside_expandable_segments(self):
        """PyTorch itself breaks captures then, where the driver is strict."""
        if self.every_mode:
            self.check_tensor_mode("1", **EXPANDABLE)

    def test_expandable_segments(self):
        for seed in self.seeds:
            with self.subTest(seed=seed):
                self.check_own_allocator("segment", "--mode", "segment", *self.pool_flags, "--seed",
                                         seed, **EXPANDABLE)

    def test_observe(self):
        if self.every_mode:
            self.check_own_allocator("observe", "--mode", "observe", "--seed", "1")

    def test_expandable_segments_plain(self):
        if self.every_mode:
            self.check_own_allocator(None, "--no-pool", "--seed", "1", **EXPANDABLE)


class Compiled(Script):
    """A script whose kernels Triton compiles. The run that does so also measures variants of
    kernels, and before each overwrites the L2 cache with a block of its size
    (torch/_inductor/runtime/benchmarking.py). The other modes are left out to save time."""
    every_mode = False
    first = {}  # the steps of that run, by rank

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=folder.name + "/inductor",
                          TRITON_CACHE_DIR=folder.name + "/triton")
        cls.first = cls.plain_run().steps
        super().setUpClass()

    def test_first_run(self):
        for rank, steps in self.first.items():
            for first, later in zip(steps, self.plain[rank]):
                self.assertEqual(first["requested"], later["requested"])
                self.assertEqual(first["tensors"], later["tensors"])
            if not running.on_gpu:
                # Later runs may have workspaces that were not there beside the block.
                self.assertGreater(steps[-1]["allocated_peak"],
                                   self.plain[rank][-1]["allocated_peak"])
                more = steps[0]["allocated_peak"] - steps[0]["allocated"]
                self.assertGreater(more, L2_CACHE - COPIES)
                self.assertLess(more, L2_CACHE + COPIES)


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--seeds", type=lambda text: text.split(","))
    parser.add_argument("--every-mode", action="store_true")
    parser.add_argument("name", choices=list(SCRIPTS))
    args = parser.parse_args(argv[1:])
    row = SCRIPTS[args.name]

    running.on_gpu = args.gpu
    named = os.environ.get("SPILLWAY_TEST_TORCH")
    # What compiles kernels starts processes of its own, and is not forked.
    own = named if named and not row.triton else sys.executable
    interpreter, reason = (own, None) if args.gpu else wheel.find()
    if reason is None and row.triton:
        reason = wheel.why_not_triton(interpreter)
    if reason:
        print(reason)
        return 77
    launcher = [interpreter]
    if row.processes > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                     str(row.processes)]
    Script.command = [*launcher, *steps_of(*row.command)]
    Script.processes = row.processes
    Script.late = row.late
    Script.every_mode = args.every_mode or (not args.seeds and (args.gpu or row.every_mode))
    if args.seeds:
        Script.seeds = args.seeds
        Script.pool_flags = ["--growth", "0%"]
    case = "Compiled" if row.triton else "Script"
    program = unittest.main(argv=argv[:1], defaultTest=case, exit=False, verbosity=2)
    return not program.result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
