#!/usr/bin/env python3
"""Traces of real models, replayed: content intact, the right peaks, no needless driver calls.

With the argument --long, the whole matrix: every trace, both ways, 1 and 4 streams, 10 seeds.
"""
import csv
import functools
import sys

import harness
from harness import REPLAY, TRACES

NAMES = ("pangu_2.6B", "resnet50", "S_1")
LONG = "--long" in sys.argv
MEMORY_CALLS = ("cuMemAddressReserve", "cuMemMap", "cuMemUnmap", "cuMemSetAccess")


@functools.cache
def peak_live(name):
    """Highest sum of live buffers, each rounded up to 512 bytes; computed apart from the replay."""
    changes = []
    with open(TRACES / f"{name}.csv", newline="") as rows:
        for row in csv.DictReader(rows):
            size = (int(row["size"]) + 511) // 512 * 512
            changes += [(int(row["lower"]), size), (int(row["upper"]), -size)]
    live = peak = 0
    for _, change in sorted(changes):  # at the same time frees first: they are negative
        live += change
        peak = max(peak, live)
    return peak


class Replay(harness.Case):
    def replay(self, name, *flags, way="async", steps=3, streams=1, seed=0, **options):
        options = {"SIM_SEED": seed, **options}
        return self.run_program(REPLAY, f"--{way}", "--steps", steps, "--streams", streams,
                                "--seed", seed, *flags, TRACES / f"{name}.csv", **options)

    def check(self, name, way, streams, seed):
        with self.subTest(f"{name} {way}, {streams} streams, seed {seed}"):
            result = self.replay(name, way=way, streams=streams, seed=seed)
            device = result.device()
            self.assertIn(" 0 mismatches", result.stdout)
            self.assertEqual(device["live_peak_bytes"], peak_live(name))
            self.assertEqual(device["live_bytes"], 0)
            self.assertEqual(device["committed_bytes"], 0, "chunks left after the trim")
            self.assertEqual(device["passed_allocs"], 0)
            self.assertEqual(device["allocs"], device["frees"])
            if way == "async":
                self.assertEqual(device["host_waits"], 0)

    def more_calls(self, name, **options):
        """Driver calls that three further steps add to a run of five. By then the addresses of a
        step are planned if memory had to be stolen."""
        short = self.replay(name, steps=5, **options).device()["driver_calls"]
        long = self.replay(name, steps=8, **options).device()["driver_calls"]
        return {call: count - short.get(call, 0) for call, count in long.items()
                if count != short.get(call, 0)}


class Content(Replay):
    def test_one_stream(self):
        for name in NAMES:
            for way in ("async", "sync"):
                self.check(name, way, streams=1, seed=0)

    def test_four_streams(self):
        for seed in (1, 2):
            for way in ("async", "sync"):
                self.check("resnet50", way, streams=4, seed=seed)
        for name in ("pangu_2.6B", "S_1"):
            self.check(name, "async", streams=4, seed=1)


class SteadyState(Replay):
    def check_nothing_created(self, calls):
        for call in ("cuMemCreate", "cuMemRelease"):
            self.assertNotIn(call, calls)

    def check_no_memory_call(self, calls):
        self.check_nothing_created(calls)
        for call in MEMORY_CALLS:
            self.assertNotIn(call, calls)

    def test_nothing_is_created(self):
        for name in NAMES:
            for way in ("async", "sync"):
                with self.subTest(f"{name} {way}"):
                    self.check_nothing_created(self.more_calls(name, way=way))

    def test_growth_ends_with_four_streams(self):
        """No step is like another, but the growth allowance of 10 % is hardly exceeded."""
        for name in NAMES:
            with self.subTest(name):
                device = self.replay(name, steps=12, streams=4, seed=1, GROWTH="10%").device()
                self.assertLess(device["committed_peak_bytes"],
                                1.12 * device["live_peak_bytes"])

    def test_no_memory_call(self):
        for name, options in (("resnet50", {}), ("S_1", {}), ("pangu_2.6B", {"GROWTH": "15%"})):
            with self.subTest(name):
                self.check_no_memory_call(self.more_calls(name, way="sync", **options))
                self.assertEqual(self.more_calls(name, way="async", **options), {})


class Headroom(Replay):
    def test_three_percent(self):
        """A device with 3 % more than the live peak: stealing provides the rest."""
        memory = peak_live("pangu_2.6B") * 103 // 100
        result = self.replay("pangu_2.6B", SIM_MEMORY=memory, SPILL="off")
        self.assertIn(" 0 mismatches", result.stdout)
        self.assertLessEqual(result.device()["committed_peak_bytes"], memory)
        self.assertEqual(result.device()["host_peak_bytes"], 0)


class Long(Replay):
    def test_matrix(self):
        if not LONG:
            self.skipTest("only with --long")
        for name in NAMES:
            for way in ("async", "sync"):
                for streams in (1, 4):
                    for seed in range(10):
                        self.check(name, way, streams, seed)


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
        sys.argv.append("Long")
    harness.main()
