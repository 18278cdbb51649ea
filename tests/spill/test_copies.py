#!/usr/bin/env python3
"""Copies and memsets of blocks that are partly on the host, with a driver that refuses those which
cross from device to host memory, or does them wrong."""
import json
import re
import sys
import unittest

import spill  # finds the harness
import harness

CROSSING = harness.ROOT / "tests/spill/crossing"
ACROSS = harness.ROOT / "tests/spill/across"


class Copies(harness.Case):
    def run_crossing(self, *names, **options):
        """Half of the granules of each block are on the host."""
        policy = self.folder / "half.json"
        rule = {"name": "half", "match": {}, "action": {"host_share": "50%"}}
        policy.write_text(json.dumps({"version": 1, "rules": [rule]}))
        return self.run_program(CROSSING, *names, POLICY=policy, SIM_MEMORY="256MiB",
                                CHECK="on", allow=[spill.SPILL_LINE], **options)

    def test_what_the_driver_does(self):
        """What the driver may do with a copy that crosses hurts, unless it is split."""
        result = self.run_crossing(SIM_CROSSING="works", SPLIT_COPIES="off")
        self.assertEqual(result.stdout, "")
        self.assertGreater(result.device()["host_peak_bytes"], 0)
        for crossing, pattern in (("refused", ": 1, wrong"), ("wrong", ": 0, wrong")):
            for name in ("HtoD", "DtoD", "Rows", "D32Async", "D2D8", "Batch", "BatchVolumes",
                         "Captured"):
                with self.subTest(crossing, name=name):
                    result = self.run_crossing(name, SIM_CROSSING=crossing, SPLIT_COPIES="off",
                                               status=1)
                    self.assertRegex(result.stdout, pattern)

    def test_work_of_another_device(self):
        """Memory that it uses stays in its place until it is done, also where it has no access."""
        policy = self.folder / "others.json"
        rule = {"name": "others", "match": {"size": {"min": "7MiB", "max": "7MiB"}},
                "action": {"placement": "device"}}
        policy.write_text(json.dumps({"version": 1, "rules": [rule]}))
        for way in "peer", "plain", "host", "row", "graph", "kernel":
            with self.subTest(way):
                result = self.run_program(ACROSS, way, SIM_DEVICES=2, SIM_MEMORY="64MiB",
                                          CHECK="on", POLICY=policy, MOVE_WAIT=20,
                                          allow=["device 1 is full", "no more room for it"])
                self.assertEqual(result.stdout, "9 other blocks, content right\n")
                self.assertGreater(result.device(1)["host_peak_bytes"], 0)

    def test_freed_while_another_device_uses_it(self):
        """Also where the driver does not tell what the graph uses, or whose its stream is."""
        for fail in ("", "cuGraphGetNodes:1+:801", "cuStreamGetCtx:1+:801"):
            with self.subTest(fail):
                result = self.run_program(ACROSS, "freed", SIM_DEVICES=2, SIM_FAIL=fail)
                self.assertEqual(result.stdout, "1 other blocks, content right\n")

    def test_every_function(self):
        for crossing in ("works", "refused", "wrong"):
            for seed in (0, 3):
                with self.subTest(crossing, seed=seed):
                    result = self.run_crossing(SIM_CROSSING=crossing, SIM_SEED=seed)
                    self.assertEqual(result.stdout, "")

    def count_calls(self, **options):
        log = self.folder / "log"
        self.run_crossing(SIM_LOG=log, **options)
        return len(re.findall(r" cuMem(?:cpy|set)\w+ = ", log.read_text()))

    def test_nothing_is_split_without_need(self):
        """Of blocks on the device, each copy of the program is one of the driver."""
        bare = self.folder / "bare"
        self.run_program(CROSSING, preload=False, SIM_LOG=bare, SIM_MEMORY="256MiB")
        calls = len(re.findall(r" cuMem(?:cpy|set)\w+ = ", bare.read_text()))
        on_device = self.folder / "device"
        # Without a host tier, whose trial would copy too.
        self.run_program(CROSSING, SIM_LOG=on_device, SIM_MEMORY="256MiB", SPILL="off")
        self.assertEqual(len(re.findall(r" cuMem(?:cpy|set)\w+ = ", on_device.read_text())), calls)
        self.assertGreater(self.count_calls(), calls + 100)


if __name__ == "__main__":
    harness.main()
