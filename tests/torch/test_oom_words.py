#!/usr/bin/env python3
"""Code that knows PyTorch's out-of-memory error by its text: what finds it in which mode, and that
spillway names what does not."""
import json
import sys
import unittest

import wheel
from running import HERE, Run

# As 32 GiB are asked for first, memory is short in every mode.
FLAGS = ["--memory", "4GiB", "--spill", "off"]
LINE = "spillway:   in tensor mode PyTorch's error says \"(out of memory)\""
# What libraries look for in the text, each with whether it is there in tensor mode. Lightning and
# toma look for both words. docs/pytorch.md lists them.
PHRASES = {
    ("CUDA", "out of memory"): True,   # Lightning's batch-size finder, toma
    ("out of memory",): True,          # fairseq
    (" out of memory.",): False,       # accelerate, with it transformers and lm-eval
    ("CUDA out of memory. ",): False,  # detectron2, mmdetection
    ("CUDA out of memory",): False,    # fastai 1
}


class Words(unittest.TestCase):
    interpreter = None

    def run_script(self, *arguments, flags=()):
        return Run([self.interpreter, str(HERE / "find_batch_size.py"), *arguments],
                   [*FLAGS, *flags])

    def test_phrases(self):
        for mode in ("tensor", "segment"):
            run = self.run_script("--words", flags=["--mode", mode])
            (text,), is_runtime_error = json.loads(run.stdout)
            self.assertTrue(is_runtime_error)
            for phrase, there in PHRASES.items():
                with self.subTest(mode=mode, phrase=phrase):
                    self.assertEqual(all(word in text for word in phrase),
                                     there or mode == "segment")

    def test_accelerate_in_tensor_mode(self):
        """It passes the error on. The report has named the cause before, once."""
        run = self.run_script()
        self.assertEqual(run.status, 1, run.stderr)
        self.assertIn("torch.OutOfMemoryError", run.stderr)
        before = run.stderr.partition("Traceback")[0]
        self.assertEqual(before.count(LINE), 1)
        self.assertEqual(run.stderr.count(LINE), 1)
        self.assertIn("accelerate.find_executable_batch_size", before)
        # Newer versions of PyTorch ask twice.
        self.assertEqual(run.stderr.count("spillway: out of memory on device"), 1)

    def test_accelerate_in_segment_mode(self):
        run = self.run_script(flags=["--mode", "segment"])
        self.assertEqual(run.status, 0, run.stderr)
        self.assertIn(json.loads(run.stdout), range(5, 9))
        self.assertNotIn(LINE, run.stderr)

    def test_verdict(self):
        """The same words in each mode: the program did without memory, so its need is open."""
        for flags in (["--mode", "segment", "--spill", "off"], ["--no-pool"]):
            with self.subTest(flags):
                run = Run([self.interpreter, str(HERE / "find_batch_size.py")],
                          ["--memory", "4GiB", *flags])
                self.assertEqual(run.status, 0, run.stderr)
                self.assertRegex(run.stderr,
                                 r"verdict: ended well in 4 GiB, but not with all that it asked "
                                 r"for: allocation \d+ on device 0, .* GiB by cu(da|Mem)\w+ .* "
                                 r"failed with out of memory, as did \d+ other calls, and the ")
                self.assertRegex(run.stderr,
                                 r"needs at least about [\d.]+ GiB: .*; the \d+ requests that were "
                                 r"refused, the last of [\d.]+ GiB, are not counted")
                self.assertNotIn("at most", run.stderr)

    def test_tensor_mode_spills_instead(self):
        """With host memory to go to, the first size fits."""
        run = Run([self.interpreter, str(HERE / "find_batch_size.py")],
                  ["--memory", "4GiB", "--host-memory", "128GiB"])
        self.assertEqual((run.status, run.stdout.strip()), (0, "64"), run.stderr)
        self.assertNotIn(LINE, run.stderr)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Words))
