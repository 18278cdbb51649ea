#!/usr/bin/env python3
"""Blocks that executable CUDA graphs name stay on the device, or come back before a launch; others
move, as without graphs."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../preload"))
import harness
from spill import PATIENT, SPILL_LINE

REPLAYS = harness.ROOT / "tests/spill/replays"
GRAPHS = harness.ROOT / "tests/spill/graphs"
BLOCK = 12 << 20
MOST = 14 << 20  # a block, with the rest of its chunks
SEEDS = (1, 2, 3)


class Graphs(harness.Case):
    def evicted(self, *arguments, **options):
        """The bytes of old blocks that went to the host."""
        options = {"SIM_MEMORY": "64MiB", "SIM_SEED": 1, "CHECK": "on", "GRAPHS": "stay",
                   **options}
        result = self.run_program(GRAPHS, *arguments, allow=[SPILL_LINE], **options)
        self.assertEqual(result.stdout, "0 words wrong\n")
        device = result.device()
        return device["spilled_bytes"] - device["placed_bytes"]

    def test_what_no_graph_names_moves(self):
        for how in ("kernel", "fill", "copy", "child", "twice"):
            for seed in SEEDS:
                with self.subTest(how, seed=seed):
                    moved = self.evicted(how, 0, 1, 2, SIM_SEED=seed)
                    self.assertGreater(moved, 0)
                    self.assertLessEqual(moved, MOST)

    def test_what_a_graph_names_stays(self):
        for how in ("kernel", "fill", "copy", "copy-in", "copy-out", "child", "twice"):
            with self.subTest(how):
                self.assertEqual(self.evicted(how, 0, 1, 2, 3), 0)

    def test_all_stays_until_the_graph_is_known(self):
        self.assertEqual(self.evicted("captured", 0), 0)

    def test_a_graph_that_is_gone(self):
        for how in ("forgotten", "destroyed"):
            with self.subTest(how):
                self.assertGreater(self.evicted(how, 0, 1, 2, 3), BLOCK)

    def test_a_graph_that_could_not_be_destroyed(self):
        for how, function in (("refused-exec", "cuGraphExecDestroy"),
                              ("refused-graph", "cuGraphDestroy")):
            with self.subTest(how):
                self.assertEqual(self.evicted(how, 0, 1, 2, 3, SIM_FAIL=f"{function}:1:999"), 0)

    def test_a_stream_that_is_gone(self):
        """Nothing was captured on it, so its end keeps nothing in its place."""
        self.assertGreater(self.evicted("none"), BLOCK)

    def test_older_and_per_thread_editions(self):
        """Three blocks stay, and the fourth moves."""
        for how in ("cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithParams",
                    "cuGraphInstantiateWithParams_ptsz", "cuStreamBeginCapture",
                    "cuStreamBeginCapture_ptsz", "cuStreamBeginCapture_v2_ptsz",
                    "cuStreamBeginCaptureToGraph", "cuStreamBeginCaptureToGraph_ptsz"):
            with self.subTest(how):
                moved = self.evicted(how, 0, 1, 2)
                self.assertGreater(moved, 0)
                self.assertLessEqual(moved, MOST)

    def test_an_updated_graph(self):
        for how in ("updated", "older-update"):
            with self.subTest(how):
                moved = self.evicted(how)
                self.assertGreater(moved, BLOCK)

    def test_parameters_that_are_not_read(self):
        for how in ("changed", "changed-v1", "changed-fill", "changed-copy", "changed-node",
                    "changed-child", "changed-batch"):
            with self.subTest(how):
                self.assertEqual(self.evicted(how), 0)

    def test_one_line_says_so(self):
        for how, blocks, lines in (("changed", (), 1), ("kernel", (0,), 0)):
            with self.subTest(how):
                result = self.run_program(GRAPHS, how, *blocks, SIM_MEMORY="64MiB", LOG="info",
                                          allow=[""])
                self.assertEqual(result.stderr.count("nodes of a CUDA graph cannot be read"), lines)

    def test_nodes_that_cannot_be_read(self):
        """Then all that lived stays. An old driver has none of these functions."""
        for name in ("cuGraphGetNodes", "cuGraphNodeGetType", "cuGraphKernelNodeGetParams_v2"):
            for fail in (f"{name}:1:801", f"{name}:1+:801"):
                with self.subTest(fail):
                    self.assertEqual(self.evicted("kernel", 0, SIM_FAIL=fail), 0)

    def test_what_kernels_name_moves_between_launches(self):
        for how in ("kernel", "child", "twice"):
            with self.subTest(how):
                self.assertGreater(self.evicted(how, 0, 1, 2, 3, GRAPHS="move"), BLOCK)
        for how in ("fill", "copy", "copy-in", "copy-out"):
            with self.subTest(how):
                self.assertEqual(self.evicted(how, 0, 1, 2, 3, GRAPHS="move"), 0)


class Replays(harness.Case):
    def replay(self, *arguments, **options):
        """The bytes of old blocks that went to the host, and the MiB that launches brought back."""
        options = {"SIM_MEMORY": "64MiB", "SIM_SEED": 1, "CHECK": "on", **PATIENT, **options}
        result = self.run_program(REPLAYS, 2, *arguments, allow=[SPILL_LINE], **options)
        self.assertRegex(result.stdout, "^[0-9]+ MiB came back\n$")
        device = result.device()
        return (device["spilled_bytes"] - device["placed_bytes"],
                int(result.stdout.split()[0]))

    def test_blocks_come_back_before_a_launch(self):
        for how in ((), ("updated",), ("pointers",), ("brief",)):
            with self.subTest(how):
                evicted, returned = self.replay(*how)
                self.assertGreater(evicted, 0)
                self.assertGreater(returned, 0)

    def test_in_every_mode(self):
        for overlap in ("guarded", "off"):
            with self.subTest(overlap):
                evicted, returned = self.replay(OVERLAP=overlap)
                self.assertGreater(evicted, 0)
                self.assertGreater(returned, 0)

    def test_blocks_that_stay(self):
        """A copy or fill may depend on where its operands are, NCCL may have registered them, and
        a launch by a kernel is not seen."""
        for how in ("copied", "filled", "nccl", "device"):
            with self.subTest(how):
                self.assertEqual(self.replay(how), (0, 0))

    def test_the_user_keeps_them(self):
        self.assertEqual(self.replay(GRAPHS="stay"), (0, 0))


if __name__ == "__main__":
    unittest.main()
