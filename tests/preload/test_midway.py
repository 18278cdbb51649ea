#!/usr/bin/env python3
"""What the driver refuses in the middle of a call, and calls that few programs make: the program
gets an error or goes on, and nothing is lost or counted wrong (midway.c)."""
import json
import re

import harness
from harness import MIB, PROGRAMS

BLOCK = 4 * MIB
GONE = "CUDA_ERROR_INVALID_VALUE"


class Midway(harness.Case):
    def answers(self, way, **options):
        """What is behind the colon of each line."""
        self.result = self.run_program(PROGRAMS / "midway", way, CHECK="on", **options)
        return re.findall(r": ([A-Z]\w+|[\d].*)$", self.result.stdout, re.MULTILINE)

    def check(self, ordinal=0, **expected):
        device = self.result.device(ordinal)
        self.assertEqual({key: device[key] for key in expected}, expected)

    def test_stream_of_which_nothing_is_told(self):
        """It may be captured: what is allocated on it is the driver's, and a free is refused."""
        self.assertEqual(self.answers("status"), ["CUDA_SUCCESS", "CUDA_ERROR_UNKNOWN", "1",
                                                  "CUDA_SUCCESS", "CUDA_SUCCESS"])
        self.check(allocs=1, frees=1, captured_allocs=1, passed_allocs=1, live_bytes=0,
                   passed_bytes=0)

    def test_free_that_cannot_wait(self):
        """It fails where the device does, and the block stays; beside a capture it does not wait.
        What is no block of a program is none to wait for."""
        self.assertEqual(self.answers("waits", FREE_WAITS="on"),
                         [GONE, "CUDA_ERROR_LAUNCH_FAILED", "1", "CUDA_SUCCESS", "CUDA_SUCCESS",
                          GONE])
        self.check(allocs=2, frees=2, live_bytes=0)

    def test_green_context_of_which_nothing_is_told(self):
        self.assertEqual(self.answers("green"), ["CUDA_SUCCESS", "1", "CUDA_SUCCESS"])
        self.check(allocs=1, frees=1, live_bytes=0)

    def test_primary_context_of_which_nothing_is_told(self):
        """It may live on: its blocks stay, and no other block gets their memory."""
        self.assertEqual(self.answers("primary"),
                         2 * ["CUDA_SUCCESS", "1, a block of its own: 1", "CUDA_SUCCESS",
                              "CUDA_SUCCESS"] + [GONE])
        self.check(allocs=4, frees=2, live_bytes=2 * BLOCK)

    def test_pool_of_another_device(self):
        self.assertEqual(self.answers("foreign", SIM_DEVICES=2),
                         ["CUDA_SUCCESS", "1", "CUDA_SUCCESS"])
        self.assertIn("of device 1, works", self.result.stdout)
        self.check(0, allocs=0, foreign_pool_allocs=0)
        self.check(1, allocs=1, frees=1, live_bytes=0)

    def test_registered_memory(self):
        """It counts until it is no longer registered."""
        self.assertEqual(self.answers("registered"),
                         ["CUDA_SUCCESS", "CUDA_ERROR_UNKNOWN", "CUDA_SUCCESS",
                          "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"])
        self.check(pinned_bytes=0, pinned_peak_bytes=BLOCK)
        self.assertEqual(self.answers("stuck"), ["CUDA_SUCCESS", "CUDA_ERROR_UNKNOWN"])
        self.check(pinned_bytes=BLOCK)

    def test_hardware_reaches_a_block_without_memory(self):
        """It gets its memory at once. Nothing happens where the attribute is taken away."""
        policy = self.folder / "lazy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "lazy", "match": {}, "action": {"commit": "lazy"}}]}))
        self.answers("lazy", POLICY=policy)
        self.check(allocs=2, frees=1, committed_bytes=BLOCK, committed_peak_bytes=BLOCK)

    def test_context_that_is_detached(self):
        """Only the current one can be. An attachment that failed is none."""
        self.assertEqual(self.answers("detached"),
                         ["CUDA_ERROR_INVALID_CONTEXT", "1", "CUDA_ERROR_UNKNOWN", "CUDA_SUCCESS",
                          "0"])
        self.check(allocs=1, frees=1, live_bytes=0)

    def test_question_that_the_driver_refuses(self):
        """A block can be shared where the driver says that it makes such memory."""
        self.assertEqual(self.answers("capable"), ["1", "0"])


if __name__ == "__main__":
    harness.main()
