#!/usr/bin/env python3
"""Traces of real models on devices that are too small for them: content intact, bounded, told.

With the argument --long, the whole matrix: every trace at 90, 75 and 50 % of its peak, 1 and 4
streams, 20 seeds, and two of these in each mode of moving. With --seeds=12-19, only the matrix
and these seeds; with --modes, only the modes.
"""
import argparse
import itertools
import json
import os
import sys

from spill import LONG, PATIENT, PINNED, PINNED_LINE, SPILL_LINE
import harness
import test_replay
from harness import GIB, MIB

words = argparse.ArgumentParser()
words.add_argument("--seeds")
words.add_argument("--modes", action="store_true")
given, sys.argv[1:] = words.parse_known_args()
FIRST_SEED, LAST_SEED = map(int, (given.seeds or "0-19").split("-"))
MATRIX_SEEDS = range(FIRST_SEED, LAST_SEED + 1)
OOM_LINE = r"out of memory on device 0: requested .*; host memory .* of [0-9.]+ [KMG]iB " \
    r"\(.* sets the limit\)$"


class Spill(test_replay.Replay):
    def spill(self, name, percent, allow=(), **options):
        memory = test_replay.peak_live(name) * percent // 100
        return self.replay(name, "--touch", allow=[SPILL_LINE, *allow], SIM_MEMORY=memory,
                           **options)

    def check_spill(self, name, percent, **options):
        with self.subTest(f"{name} at {percent} %: {options}"):
            result = self.spill(name, percent, **options)
            device = result.device()
            self.assertIn(" 0 mismatches", result.stdout)
            self.assertEqual(device["live_peak_bytes"], test_replay.peak_live(name))
            self.assertLessEqual(device["committed_peak_bytes"], device["limit_bytes"])
            self.assertGreater(device["spilled_bytes"], 0)
            for gauge in ("live_bytes", "committed_bytes", "host_bytes", "host_used_bytes"):
                self.assertEqual(device[gauge], 0, gauge)
            self.assertEqual(device["ooms"], 0)
            self.assertEqual(device["failed_open"], 0)
            return device


class Traces(Spill):
    def test_one_stream(self):
        self.check_spill("resnet50", 75, seed=1, OVERLAP="off")
        self.check_spill("pangu_2.6B", 75, seed=1, steps=1, OVERLAP="guarded")
        self.check_spill("S_1", 75, seed=1, steps=1)

    def test_four_streams(self):
        for percent in (90, 50):
            self.check_spill("resnet50", percent, streams=4, seed=2)
        self.check_spill("pangu_2.6B", 90, streams=4, seed=1, steps=1)

    def test_guarded(self):
        for streams, percent in ((1, 75), (4, 50)):
            device = self.check_spill("resnet50", percent, streams=streams, seed=4,
                                      OVERLAP="guarded", **PATIENT)
            self.assertGreater(device["moves"], 0)

    def test_without_streams(self):
        self.check_spill("resnet50", 75, way="sync", steps=1, seed=1)

    def test_one_call_for_each_chunk(self):
        self.check_spill("resnet50", 75, steps=1, seed=1, SIM_UNMAP="chunk", SIM_SETACCESS="chunk")

    def test_invariants(self):
        self.check_spill("resnet50", 75, seed=1, steps=1, CHECK="on")

    def test_moved(self):
        """Cold blocks make room for new ones; content is verified at each migration."""
        for overlap in ("safe", "guarded", "off"):
            device = self.check_spill("resnet50", 75, streams=4, seed=3, VERIFY="on",
                                      OVERLAP=overlap, **PATIENT)
            self.assertGreater(device["moves"], 0)
            self.assertGreater(device["spilled_bytes"], device["placed_bytes"])


class Told(Spill):
    def test_one_line_and_a_paragraph(self):
        result = self.spill("resnet50", 75, allow=[r"^spillway: "], steps=1, seed=1, SUMMARY="on")
        lines = [line for line in result.said() if "is full" in line]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertRegex(lines[0], r"\(([^()]+ in )?replay, cudaMallocAsync\)")
        self.assertIn("went to the host", result.stderr)

    def test_off(self):
        result = self.spill("resnet50", 75, allow=["out of memory on device 0"], status=1,
                            SPILL="off")
        self.assertEqual(result.device()["spilled_bytes"], 0)
        self.assertEqual(result.device()["host_peak_bytes"], 0)

    def test_budget(self):
        """Host memory is bounded too, and the summary says so."""
        result = self.spill("resnet50", 75, allow=[OOM_LINE], status=1, HOST_LIMIT="100MiB")
        device = result.device()
        self.assertEqual(device["host_limit_bytes"], 100 * MIB)
        self.assertLessEqual(device["host_peak_bytes"], 100 * MIB)
        self.assertGreaterEqual(device["ooms"], 1)

    def test_sites_tell_the_tiers(self):
        """At exit more bytes may be on the host than are live, since free memory is there too."""
        stats = self.folder / "stats.json"
        self.spill("resnet50", 75, steps=1, seed=1, STATS=stats)
        report = json.loads(stats.read_text())
        report["devices"][0].update(live_bytes=3 * MIB, host_bytes=8 * MIB)
        stats.write_text(json.dumps(report))
        said = self.run_command([harness.COMMAND, "sites", stats], harness.environment()).stdout
        self.assertRegex(said.splitlines()[-1],
                         r"^device 0 by tier, free memory included: device [0-9.]+ \w+ at exit,"
                         r" 1\.06 GiB at the peak; host 8 MiB at exit, [0-9.]+ MiB at the peak$")

    def test_default_is_half_of_the_host(self):
        result = self.spill("resnet50", 75, steps=1, seed=1, SIM_HOST_MEMORY="3GiB")
        self.assertEqual(result.device()["host_limit_bytes"], 3 * GIB // 2)

    def test_half_of_a_share_of_the_host(self):
        result = self.spill("resnet50", 75, steps=1, seed=1, SIM_HOST_MEMORY="50%")
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.assertAlmostEqual(result.device()["host_limit_bytes"] / machine, 1 / 4, delta=0.01)

    def test_more_than_the_machine(self):
        result = self.spill("resnet50", 75, steps=1, seed=1,
                            allow=["HOST_LIMIT=9GiB is more than the 3 GiB that"],
                            SIM_HOST_MEMORY="3GiB", HOST_LIMIT="9GiB")
        self.assertEqual(result.device()["host_limit_bytes"], 3 * GIB // 2)

    def test_without_a_node_of_the_host(self):
        """A driver that does not report the device's NUMA node: node 0 is used."""
        result = self.spill("resnet50", 75, steps=1, seed=1, SIM_FAIL="cuDeviceGetAttribute:4+",
                            **PATIENT)
        self.assertGreater(result.device()["moves"], 0)

    def test_driver_without_memory_of_the_host(self):
        result = self.spill("resnet50", 75, status=1, SIM_HOST_NUMA="off",
                            SIM_FAIL="cuMemHostAlloc:2+",
                            allow=["cannot spill to host memory", "out of memory"])
        self.assertEqual(len([line for line in result.said() if "cannot spill" in line]), 1)


class Pinned(Spill):
    """Devices that cannot map host chunks: new blocks are page-locked and never migrate."""
    def test_traces(self):
        for options in ({"seed": 1, "steps": 1, "CHECK": "on"}, {"seed": 2, "streams": 4},
                        {"seed": 1, "steps": 1, "way": "sync"}):
            device = self.check_spill("resnet50", 75, allow=[PINNED_LINE], **options, **PINNED)
            self.assertEqual(device["moves"], 0)
            self.assertEqual(device["spilled_bytes"], device["placed_bytes"])
            self.assertLessEqual(device["host_peak_bytes"], device["host_limit_bytes"])

    def test_budget(self):
        result = self.spill("resnet50", 75, allow=[PINNED_LINE, OOM_LINE], status=1,
                            HOST_LIMIT="100MiB", **PINNED)
        self.assertLessEqual(result.device()["host_peak_bytes"], 100 * MIB)
        self.assertGreaterEqual(result.device()["ooms"], 1)

    def test_told_once(self):
        result = self.spill("resnet50", 75, allow=[PINNED_LINE], steps=1, seed=1, **PINNED)
        self.assertEqual(len([line for line in result.said() if "page-locked" in line]), 1)


class Long(Spill):
    def matrix(self, seeds, **options):
        if not LONG:
            self.skipTest("only with --long")
        for name, percent, streams, seed in itertools.product(test_replay.NAMES, (90, 75, 50),
                                                              (1, 4), seeds):
            self.check_spill(name, percent, streams=streams, seed=seed, **options)

    def test_matrix(self):
        self.matrix(MATRIX_SEEDS)

    def test_each_mode(self):
        for overlap in ("guarded", "off"):
            self.matrix(MATRIX_SEEDS[1:3], OVERLAP=overlap)
        self.matrix(MATRIX_SEEDS[1:2], VERIFY="on")


if __name__ == "__main__":
    if LONG:
        sys.argv.append("Long.test_each_mode" if given.modes else
                        "Long.test_matrix" if given.seeds else "Long")
    harness.main()
