#!/usr/bin/env python3
"""The verdict of `spillway sim`: whether a program fits, what it took, and what was missing."""
import re
import signal
import unittest

import harness
from harness import COMMAND, PROGRAMS

FIT = PROGRAMS / "fit"
BARE = ("--no-pool",)
POOLED = ("--spill", "off")


class Fit(harness.Case):
    def sim(self, *words, flags=(), status=0, memory="256MiB", program=FIT, **options):
        """Runs the program; returns the lines of the verdict, without their beginning."""
        command = [COMMAND, "sim", "--memory", memory, *flags, "--", program, *words]
        result = self.run_command(command, harness.environment(False, False, **options))
        self.assertEqual(result.status, status, result.stderr)
        if program == FIT:
            self.assertEqual(result.stdout.split(), list(words))
        lines = result.stderr.splitlines()
        begin = [i for i, line in enumerate(lines) if line.startswith("spillway: verdict: ")]
        self.assertEqual(len(begin), 1, result.stderr)
        for line in lines[begin[0] + 1:]:
            self.assertTrue(line.startswith("spillway:   "), line)
        return [line[len("spillway: "):].strip() for line in lines[begin[0]:]]

    def test_fits(self):
        for flags in (BARE, POOLED):
            with self.subTest(flags):
                lines = self.sim("take", "take-ordered", "give", "take", flags=flags)
                self.assertEqual(lines[0], "verdict: fits")
                self.assertRegex(lines[1], r"^fit take \(pid \d+\) on device 0 \(256 MiB\): "
                                           r"peak live 128 MiB[ ,;]")
        self.assertIn(" (allocated in stream order: up to 80 MiB);", lines[1])
        self.assertIn("not yet measured on a GPU", lines[-1])

    def test_does_not_fit(self):
        """15 blocks fit, with 8 KiB too little for the sixteenth."""
        memory = str((256 << 20) - 8192)
        for flags, words, api in ((BARE, "fill", "cuMemAlloc"), (POOLED, "fill", "cudaMalloc"),
                                  (POOLED, "fill-ordered", "cudaMallocAsync"),
                                  (BARE, "fill-ordered", "cuMemAllocAsync")):
            with self.subTest(flags=flags, words=words):
                lines = self.sim(words, "fail", flags=flags, status=3, memory=memory)
                self.assertRegex(lines[0], rf"^verdict: does not fit: allocation 16 on device 0, "
                                           rf"16 MiB by {api} \(thread fit, \d+\), failed: "
                                           r"8 KiB more was needed than the 255\.99 MiB that "
                                           r"may be used$")
                self.assertIn("peak live 240 MiB", lines[1])

    def test_fits_with_the_host(self):
        lines = self.sim("take", "take-ordered", memory="96MiB")
        self.assertRegex(lines[0], r"^verdict: fits with \d+ MiB on the host$")

    def test_thread(self):
        for flags in (BARE, POOLED):
            lines = self.sim("thread", "fail", flags=flags, status=3)
            self.assertRegex(lines[0], r"allocation 17 .* \(thread stuffer, \d+\)")

    def test_however_it_ends(self):
        for flags in (BARE, POOLED):
            for word, status in (("leave", 4), ("kill", 128 + signal.SIGKILL)):
                with self.subTest(flags=flags, word=word):
                    lines = self.sim("fill", word, flags=flags, status=status)
                    self.assertIn("does not fit: allocation 17", lines[0])
                    lines = self.sim("take", word, flags=flags, status=status)
                    self.assertRegex(lines[0], r"^verdict: none: the command failed \(exit code "
                                               rf"{status}.*\) without running out of memory$")
                    self.assertIn("peak live 48 MiB", lines[1])

    def test_recovered(self):
        for flags in (BARE, POOLED):
            with self.subTest(flags):
                lines = self.sim("fill", "give", "again", flags=flags)
                after = (" and succeeded when it was repeated" if flags == BARE
                         else ", and the program continued")
                self.assertEqual(lines[0],
                                 "verdict: fits; one call failed with out of memory" + after)
        lines = self.sim("fill", "give", "again", "fail", flags=BARE, status=3)
        self.assertIn("none: the command failed (exit code 3) without running out", lines[0])
        self.assertIn("; one call failed with out of memory", lines[0])

    def test_module(self):
        """Memory may be short for something other than an allocation."""
        for flags in (BARE, POOLED):
            with self.subTest(flags):
                lines = self.sim("exhaust", "module", flags=flags, status=1)
                self.assertRegex(lines[0], r"does not fit: cuModuleLoadData on device 0, which "
                                           r"needed 64 KiB for code or data of its own \(thread fit"
                                           r", \d+\), failed: 64 KiB more was needed than the 256 "
                                           r"MiB that may be used$")
        lines = self.sim("take", "module")
        self.assertIn(" (the driver's code, local memory and graphs: up to 64 KiB)", lines[1])

    def test_chunks_of_the_program(self):
        for flags in (BARE, POOLED):
            with self.subTest(flags):
                lines = self.sim("take", "chunks", "fail", flags=flags, status=3)
                self.assertRegex(lines[0], r"allocation 15 on device 0, 16 MiB by cuMemCreate .* "
                                           r"16 MiB more was needed")

    def test_chunks_that_are_given_back(self):
        for flags in (BARE, POOLED):
            lines = self.sim("passing-chunks", flags=flags)
            self.assertEqual(lines[0], "verdict: fits")
            self.assertRegex(lines[1], r"peak live 16 MiB\b")

    def test_peak_that_the_program_reset(self):
        lines = self.sim("take-ordered", "give", "reset", "take")
        self.assertIn("peak live 80 MiB (allocated in stream order: up to 80 MiB);", lines[1])

    def test_chunks_of_the_program_on_a_full_device(self):
        lines = self.sim("module", "chunks", "fail", flags=POOLED, status=3)
        self.assertRegex(lines[0], r"16 MiB by cuMemCreate .* \d+ \w+ more was needed than the "
                                   r"256 MiB")

    def test_host_memory(self):
        for flags in (BARE, POOLED):
            lines = self.sim("host", "fail", flags=("--host-memory", "1GiB", *flags), status=3)
            self.assertRegex(lines[0], r"cuMemAllocHost on device 0, which needed 1 TiB .* "
                                       r"1023 GiB more was needed than the host memory that may be")

    def test_injected(self):
        lines = self.sim("take", flags=("--fail", "cuMemAlloc_v2:1", *BARE), status=1)
        self.assertIn("failed: not for lack of memory", lines[0])

    def test_reads(self):
        for flags in (BARE, POOLED):
            lines = self.sim("reads", flags=flags)
            self.assertEqual(
                [line for line in lines if line.startswith("the program read")],
                ["the program read 2 GPU results of 4 KiB or less, which were not computed here "
                 "(often 0); if tensor sizes depend on them, memory differs on a real GPU",
                 "the program read 1 larger GPU result (4.00 KiB in total) not computed here"])
            self.assertIn("0.0 % of kernel launches (0 of 1) were checked for use of freed memory; "
                          "not checked: 1 whose arguments are not known", lines)

    def test_processes(self):
        lines = self.sim("children", "take")
        self.assertEqual(lines[0], "verdict: fits")
        peaks = sorted(re.search(r"peak live (\d+) MiB", line).group(1) for line in lines[1:]
                       if "(pid " in line)
        self.assertEqual(peaks, ["16", "32", "48"])
        shared = [line for line in lines if "processes used device" in line]
        self.assertEqual(len(shared), 1)
        self.assertIn("3 processes used device 0", shared[0])
        self.assertIn("up to 96 MiB", shared[0])

    def test_processes_apart(self):
        lines = self.sim("children-apart", flags=("--devices", "2"))
        self.assertEqual(sum("(pid " in line for line in lines), 2)
        self.assertTrue(any("on device 1 (256 MiB): peak live 32 MiB" in line for line in lines))
        self.assertFalse(any("processes used device" in line for line in lines), lines)

    def test_nothing_used(self):
        self.assertEqual(self.sim(program="true") if not harness.SANITIZED else self.sim(),
                         ["verdict: none: no process used a simulated device"])


class Statistics(harness.Case):
    def test_last_oom(self):
        result = self.run_program(FIT, "fill-ordered", SIM_MEMORY="256MiB", SPILL="off",
                                  allow=["out of memory"])
        oom = result.device()["last_oom"]
        self.assertEqual({key: oom[key] for key in ("allocation", "bytes", "missing_bytes", "api",
                                                    "thread")},
                         {"allocation": 17, "bytes": 16 << 20, "missing_bytes": 16 << 20,
                          "api": "cudaMallocAsync", "thread": "fit"})
        result = self.run_program(FIT, "take")
        self.assertIsNone(result.device()["last_oom"])


class Compare(harness.Case):
    def compare(self, *words, flags=(), status=0, memory="256MiB"):
        command = [COMMAND, "sim", "--compare", "--summary", "off", "--memory", memory, *flags,
                   "--", FIT, *words]
        result = self.run_command(command, harness.environment(False, False))
        self.assertEqual(result.status, status, result.stderr)
        self.runs = result.stdout.count(words[0] + "\n")
        return result.said()[1:]

    def assert_smallest(self, line, size):
        self.assertRegex(line, rf"peak live 128 MiB, peak device memory \d+ MiB; smallest size "
                               rf"tried that worked: {size} MiB; (\d+ MiB was too small|"
                               r"smaller ones were not tried)$")

    def test_both_fit(self):
        lines = self.compare("take", "take-ordered")
        self.assertEqual(self.runs, 2)
        self.assertEqual(lines[:2], ["spillway: bare: fits", "spillway: under the pool: fits"])
        self.assert_smallest(lines[3], 128)
        self.assert_smallest(lines[4], 128)

    def test_neither_fits(self):
        """Both run again with ample memory; the exit code is that of the run under the pool."""
        lines = self.compare("take", "take-ordered", memory="96MiB", flags=POOLED, status=1)
        self.assertEqual(self.runs, 4)
        self.assertRegex(lines[0], "^spillway: bare: does not fit: allocation 2 .* 32 MiB more")
        self.assertEqual(lines[1], "spillway: bare, with ample memory: fits")
        lines = [line for line in lines if "out of memory on device" not in line]
        self.assertRegex(lines[2], "^spillway: under the pool: does not fit: allocation 2 ")
        self.assertEqual(lines[3], "spillway: under the pool, with ample memory: fits")
        self.assert_smallest(lines[5], 128)
        self.assert_smallest(lines[6], 128)

    def test_pool_needs_the_host(self):
        """The second run is without the pool, so that the peaks are the device's."""
        lines = self.compare("take", "take-ordered", flags=("--limit", "96MiB"))
        self.assertEqual(self.runs, 3)
        self.assertRegex(lines[2], r"^spillway: under the pool: fits with \d+ MiB on the host$")
        self.assertEqual(lines[3], "spillway: under the pool, with ample memory: fits")
        self.assert_smallest(lines[-2], 128)

    def test_pool_alone_fails(self):
        lines = self.compare("take", "take-ordered", flags=(*POOLED, "--limit", "96MiB"),
                             status=1)
        self.assertEqual(self.runs, 3)
        self.assertEqual(lines[0], "spillway: bare: fits")
        self.assertTrue(any(line.startswith("spillway: under the pool: does not fit")
                            for line in lines), lines)
        self.assertIn("spillway: under the pool, with ample memory: fits", lines)

    def test_failure_of_another_kind(self):
        lines = self.compare("take", "fail", status=3)
        self.assertEqual(self.runs, 2)
        self.assertEqual(len(lines), 2, lines)
        for line in lines:
            self.assertIn("none: the command failed (exit code 3)", line)

    def test_interrupted(self):
        """The user wants the command to end, not the next run to start."""
        self.compare("take", "interrupt", status=128 + signal.SIGINT)
        self.assertEqual(self.runs, 1)

    def test_processes(self):
        lines = self.compare("children", "take")
        shared = [line for line in lines if "3 processes used device 0" in line]
        self.assertEqual(len(shared), 2, lines)

    def test_bad_usage(self):
        result = self.run_command([COMMAND, "sim", "--compare", "--no-pool", "--", FIT],
                                  harness.environment(False, False))
        self.assertEqual(result.status, 2)
        self.assertIn("--compare", result.stderr)
        result = self.run_command([COMMAND, "sim", "--compare", "--", "no-such-command-here"],
                                  harness.environment(False, False))
        self.assertEqual(result.status, 127)
        self.assertEqual(len(result.said()), 2, result.stderr)

    def test_statistics_are_of_the_run_under_the_pool(self):
        path = self.folder / "stats.json"
        self.compare("take", "take-ordered", flags=("--stats", path))
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["stats.json"])
        self.assertIn('"limit_bytes": 268435456', path.read_text())


if __name__ == "__main__":
    harness.main()
