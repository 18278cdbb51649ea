#!/usr/bin/env python3
"""Programs of the field other than PyTorch, on the simulated GPU: they run, and take the memory
that they take without the pool (docs/reference/programs.md). scripts/setup --programs gets them."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["BUILD_ROOT"])
ROOT = HERE.parents[1]
PYTHON = ROOT / ".programs/bin/python"
TORCH = ROOT / ".venv/lib"
MIB = 1 << 20
SKIPPED = 77
FITS = "fits in 8 GiB"
# A later --memory overrules an earlier one.
SHORT = ("--memory", "1536MiB")
TWO_RANKS = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def torch_packages():
    """The folder of the packages that go with PyTorch; None: there is none."""
    return next(TORCH.glob("python3.*/site-packages"), None)


class Programs(unittest.TestCase):
    def run_program(self, name, *flags, packages=None, launcher=(), words=(), verdict=FITS):
        """(stdout, statistics); without the pool there are no statistics. With a launcher, those of
        rank 0."""
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("SPILLWAY", "LD_", "PYTHON"))}
        env |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        python = PYTHON
        if packages is not None:
            python, env["PYTHONPATH"] = ROOT / ".venv/bin/python", str(packages)
        with tempfile.TemporaryDirectory() as folder:
            if "--no-pool" not in flags:
                name_of_rank = "stats-%r.json" if launcher else "stats.json"
                flags = (*flags, "--stats", pathlib.Path(folder, name_of_rank))
            done = subprocess.run([BUILD / "spillway", "sim", "--memory", "8GiB", *flags, "--",
                                   python, *launcher, HERE / name, *words], env=env, text=True,
                                  capture_output=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, f"(?m)^spillway: verdict: {verdict}")
            written = sorted(pathlib.Path(folder).iterdir())
            return done.stdout, json.loads(written[0].read_text()) if written else None

    def test_numba(self):
        bare, _ = self.run_program("numba_add.py", "--no-pool")
        pooled, stats = self.run_program("numba_add.py")
        self.assertEqual(pooled, bare)
        taken = int(re.search(r"^copied: 1048576, taken: (\d+)\n$", bare).group(1))
        self.assertGreaterEqual(taken, 8 * MIB)
        self.assertLess(taken, 9 * MIB) # the kernel's code is in it
        self.assertEqual(stats["devices"][0]["live_peak_bytes"], 8 * MIB)
        self.assertEqual(stats["devices"][0]["passed_allocs"], 0)

    @unittest.skipIf(torch_packages() is None, "needs PyTorch (scripts/setup --torch gets one)")
    def test_bitsandbytes(self):
        packages = HERE.parents[1] / ".programs/with-torch"
        bare, _ = self.run_program("bitsandbytes_steps.py", "--no-pool", packages=packages)
        pooled, stats = self.run_program("bitsandbytes_steps.py", packages=packages)
        self.assertEqual(pooled, bare)
        state, allocated = map(int, re.search(r"^state: (\d+), allocated: (\d+)\n",
                                              bare).groups())
        self.assertAlmostEqual(state / (4096 * 4096), 2, delta=0.1) # bytes for each weight
        self.assertGreaterEqual(allocated, state)
        self.assertEqual(stats["mode"], "tensor")

    @unittest.skipIf(torch_packages() is None, "needs PyTorch (scripts/setup --torch gets one)")
    def test_deepspeed(self):
        """Two ranks of ZeRO, with memory in plenty and by spilling."""
        def allocated(stage, *flags, **more):
            out, stats = self.run_program("deepspeed_steps.py", "--devices", "2", *flags,
                                          packages=ROOT / ".programs/with-torch",
                                          launcher=TWO_RANKS, words=[stage], **more)
            return int(re.search(r"(?m)^allocated: (\d+)$", out).group(1)), stats

        for stage in "23":
            with self.subTest(stage=stage):
                bare, _ = allocated(stage, "--no-pool")
                pooled, stats = allocated(stage)
                # Tensors of other streams may still be counted.
                self.assertAlmostEqual(pooled / bare, 1, delta=0.001)
                self.assertEqual(stats["mode"], "tensor")
        spilled, _ = allocated("3", *SHORT,
                               verdict=r"does not fit in 1\.50 GiB, but runs by spilling")
        self.assertEqual(spilled, pooled)


if __name__ == "__main__":
    if not PYTHON.exists():
        print("skipped: scripts/setup --programs has not been run")
        sys.exit(SKIPPED)
    unittest.main()
