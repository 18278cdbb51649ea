#!/usr/bin/env python3
"""The verdict of `spillway sim` on a real training script agrees with what PyTorch counts.

Exits with 77 when there is no PyTorch that the simulated GPU can serve.
"""
import functools
import os
import re
import subprocess
import sys
import unittest

import running
import wheel

SCRIPT = running.steps_of("gpt2_like.py", "--layers", "2", "--width", "256", "--heads", "4",
                          "--vocabulary", "5000", "--context", "256", "--batch", "4",
                          "--steps", "2")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def size(number, unit):
    return float(number) * UNITS[unit]


class Fit(unittest.TestCase):
    interpreter = None

    @functools.cache
    def run_script(self, *flags):
        return running.Run([self.interpreter, *SCRIPT], ["--verbose", *flags])

    def verdict(self, run):
        lines = [line for line in run.said() if line.startswith(("spillway: verdict: ",
                                                                 "spillway:   "))]
        self.assertTrue(lines and lines[0].startswith("spillway: verdict: "), run.stderr)
        return "\n".join(lines)

    def figure(self, pattern, text):
        match = re.search(pattern + r" ([\d.]+) (\w+)", text)
        self.assertIsNotNone(match, text)
        return size(*match.groups())

    def test_agrees_with_the_plain_run(self):
        plain = self.run_script("--no-pool")
        pooled = self.run_script()
        last = plain.steps["0"][-1]
        for run in (plain, pooled):
            self.assertEqual(run.status, 0, run.stderr)
            self.assertRegex(self.verdict(run), r"^spillway: verdict: fits in \S+ GiB, \S+ GiB to ")
            self.assertRegex(self.verdict(run),
                             r"of [2-9]\d* GPU results of 4 KiB or less that the program read, \d+ "
                             r"may not have been computed")
        tensors = self.figure("PyTorch's tensors: up to", self.verdict(pooled))
        self.assertAlmostEqual(tensors, pooled.steps["0"][-1]["allocated_peak"],
                               delta=0.01 * UNITS["MiB"])
        self.assertGreaterEqual(tensors, last["requested_peak"] - 0.01 * UNITS["MiB"])
        self.assertLessEqual(tensors, last["allocated_peak"] + 512 * last["blocks_peak"])
        self.assertGreaterEqual(self.figure("peak live", self.verdict(plain)),
                                last["reserved_peak"] - 0.01 * UNITS["MiB"])

        memory = str(int(0.6 * last["allocated_peak"]))
        for flags in (["--no-pool"], ["--spill", "off"]):
            with self.subTest(flags):
                run = self.run_script(*flags, "--memory", memory)
                self.assertEqual(run.status, 1)
                verdict = self.verdict(run)
                self.assertRegex(verdict, r"does not fit in .*: allocation \d+ on device 0, .* by "
                                          r"cu(da)?M\w+ \(thread \w+, \d+\) failed: ")
                self.assertGreater(self.figure(r" failed: for it,(?: at least)?", verdict), 0)

        run = self.run_script("--memory", memory)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertRegex(self.verdict(run), r"spilling: up to [\d.]+ MiB on the host\b")
        self.assertEqual(run.steps["0"][-1]["allocated_peak"],
                         pooled.steps["0"][-1]["allocated_peak"])

    def test_without_chunks_of_the_host(self):
        """Memory that does not fit on the device is page-locked host memory; the figures stay
        right."""
        plenty = self.run_script()
        limit = int(0.6 * plenty.steps["0"][-1]["allocated_peak"])
        memory = str(limit + (64 << 20)) # code needs room, and nothing moves out of its way
        for mode in ("tensor", "segment"):
            with self.subTest(mode):
                run = self.run_script("--mode", mode, "--host-numa", "off", "--memory", memory,
                                      "--limit", str(limit))
                self.assertEqual(run.status, 0, run.stderr)
                self.assertRegex(self.verdict(run), r"spilling: up to [\d.]+ MiB on the host\b")
                device = run.stats["0"]["devices"][0]
                self.assertEqual(device["moves"], 0)
                self.assertGreater(device["placed_bytes"], 0)
                if mode == "tensor":
                    self.assertEqual([step["allocated"] for step in run.steps["0"]],
                                     [step["allocated"] for step in plenty.steps["0"]])

    def test_very_little_memory(self):
        """Either an allocation fails first or the code of the next kernel; the report names it."""
        run = self.run_script("--spill", "off", "--memory", "100MiB")
        self.assertNotEqual(run.status, 0)
        self.assertRegex(self.verdict(run), r"does not fit in 100 MiB: .* on device 0, .* failed: "
                                            r"for it, .* missing;")

    def test_processes(self):
        """One line for each process of torchrun; torchrun itself and the workers use no device."""
        script = str(running.HERE / "two_processes.py")
        for launcher, words in (("torch.distributed.run", "--nproc_per_node 2"),
                                ("accelerate.commands.launch", "--multi_gpu --num_processes=2")):
            run = running.Run([self.interpreter, "-m", launcher, *words.split(), script],
                              ["--verbose"])
            self.assertIn(f"{launcher} starts 2 ranks, so 2 devices are simulated", run.stderr)
            verdict = self.verdict(run)
            self.assertEqual(
                sorted(re.findall(r"two_processes\.py \(pid \d+, rank (\d)\) on device (\d)",
                                  verdict)), [("0", "0"), ("1", "1")])
            self.assertIn("verdict: fits", verdict)
        loader = running.Run([self.interpreter, str(running.HERE / "data_loader.py")],
                             ["--verbose"])
        self.assertEqual(len(re.findall(r"\(pid \d+\) on device", self.verdict(loader))), 1)

    @unittest.skipUnless("--long" in sys.argv, "only with --long")
    def test_compare(self):
        done = subprocess.run([str(running.ROOT / "spillway"), "sim", "--compare", "--memory",
                               "1GiB", "--", self.interpreter, *SCRIPT],
                              env={**os.environ, "STEPS_OUTPUT": "/dev/null"}, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("step 2: "), 2)
        for side in ("bare", "under the pool"):
            line = re.search(rf"^spillway: {side}: peak live .*", done.stderr, re.MULTILINE)
            self.assertIsNotNone(line, done.stderr)
            enough = self.figure("smallest size tried that worked:", line.group())
            self.assertGreaterEqual(enough, self.figure("peak live", line.group()))
            self.assertLessEqual(enough, 1.05 * self.figure("peak device memory", line.group()))


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Fit))
