#!/usr/bin/env python3
"""PyTorch's out-of-memory error has its own text in each mode, with true figures, and code that
knows the error by its text finds it."""
import json
import re
import sys
import unittest

import wheel
from running import HERE, Run

# As 31 GiB are asked for first, memory is short in every mode.
FLAGS = ["--memory", "4GiB", "--spill", "off"]
MODES = ([], ["--mode", "segment"])
# What libraries look for in the text: Lightning's batch-size finder and toma; fairseq; accelerate
# and with it transformers and lm-eval; detectron2 and mmdetection; fastai 1.
PHRASES = ("CUDA", "out of memory", " out of memory.", "CUDA out of memory. ", "CUDA out of memory")


def without_figures(text):
    return re.sub(r"[\d.]+ (GiB|MiB|KiB|bytes)", "...", text)


class Words(unittest.TestCase):
    interpreter = None

    def run_script(self, *arguments, flags=()):
        run = Run([self.interpreter, str(HERE / "find_batch_size.py"), *arguments], flags)
        self.assertEqual(run.status, 0, run.stderr)
        return run

    def words(self, flags):
        (text,), is_runtime_error = json.loads(self.run_script("--words", flags=flags).stdout)
        self.assertTrue(is_runtime_error)
        return text

    def test_text(self):
        """That of a run without spillway, but for the figures."""
        bare = without_figures(self.words(["--memory", "4GiB", "--no-pool"]))
        for mode in MODES:
            with self.subTest(mode):
                text = self.words([*FLAGS, *mode])
                self.assertEqual(without_figures(text), bare)
                for phrase in PHRASES:
                    self.assertIn(phrase, text)

    def test_one_memory(self):
        """Also of a GPU without memory of its own, where it has the figures of the budget: 3.5 GiB
        of 4, as 512 MiB stay free."""
        bare = without_figures(self.words(["--memory", "4GiB", "--no-pool"]))
        for mode in MODES:
            with self.subTest(mode):
                text = self.words(["--memory", "4GiB", "--profile", "gb10", *mode])
                self.assertEqual(without_figures(text), bare)
                self.assertIn("GPU 0 has a total capacity of 3.50 GiB of which ", text)

    def test_figures(self):
        """The tensors that the pool serves are what PyTorch has allocated."""
        text = self.words(FLAGS)
        self.assertIn("Tried to allocate 31.25 GiB. ", text)
        self.assertIn("Of the allocated memory 1.25 GiB is allocated by PyTorch, and 0 bytes is "
                      "reserved by PyTorch but unallocated.", text)

    def test_accelerate(self):
        for mode in MODES:
            with self.subTest(mode):
                run = self.run_script(flags=[*FLAGS, *mode])
                self.assertIn(json.loads(run.stdout), range(5, 9))

    def test_verdict(self):
        """The same words in each mode: the program did without memory, so its need is open."""
        for flags in (*([*mode, "--spill", "off"] for mode in MODES), ["--no-pool"]):
            with self.subTest(flags):
                run = self.run_script(flags=["--memory", "4GiB", "--verbose", *flags])
                self.assertRegex(run.stderr,
                                 r"verdict: ended well in 4 GiB, but not with all that it asked "
                                 r"for: allocation \d+ on device 0, .* GiB by cu(da|Mem)\w+ .* "
                                 r"failed with out of memory, as did \d+ other calls, and the ")
                self.assertRegex(run.stderr,
                                 r"needs at least about [\d.]+ GiB: .*; the \d+ requests that were "
                                 r"refused, the last of [\d.]+ GiB, are not counted")
                self.assertNotIn("at most", run.stderr)

    def test_spills_instead(self):
        """With host memory to go to, the first size fits."""
        run = self.run_script(flags=["--memory", "4GiB", "--host-memory", "128GiB"])
        self.assertEqual(run.stdout.strip(), "64")


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Words))
