#!/usr/bin/env python3
"""Traces of real models on devices that are too small for them: content intact, bounded, told.

With the argument --long, the whole matrix: every trace at 90, 75 and 50 % of its peak, 1 and 4
streams, 20 seeds.
"""
import json
import os
import re
import sys
import unittest

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../preload"))
import harness
import test_replay
from harness import GIB, MIB

MOVES = harness.ROOT / "tests/spill/moves"
BESIDE = harness.ROOT / "tests/spill/beside"
THROUGH = harness.ROOT / "tests/spill/through"
PERIODIC = harness.ROOT / "tests/spill/periodic"
SPILL_LINE = r"device 0 is full: for a block of .* are on the host now; up to .* may be used"
ILLEGAL_ADDRESS = 700
OOM_LINE = r"out of memory on device 0: asked for .*; on the host .* of [0-9.]+ [KMG]iB$"


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
        for percent in (90, 75, 50):
            self.check_spill("resnet50", percent, seed=1)
        for name in ("pangu_2.6B", "S_1"):
            self.check_spill(name, 75, seed=1, steps=1)

    def test_four_streams(self):
        for percent in (90, 50):
            self.check_spill("resnet50", percent, streams=4, seed=2)
        self.check_spill("pangu_2.6B", 90, streams=4, seed=1, steps=1)

    def test_trusted(self):
        for streams, percent in ((1, 75), (4, 75), (4, 50)):
            device = self.check_spill("resnet50", percent, streams=streams, seed=4, OVERLAP="trust")
            self.assertGreater(device["moves"], 0)

    def test_without_streams(self):
        self.check_spill("resnet50", 75, way="sync", seed=1)

    def test_one_call_for_each_chunk(self):
        self.check_spill("resnet50", 75, seed=1, SIM_UNMAP="chunk", SIM_SETACCESS="chunk")

    def test_invariants(self):
        self.check_spill("resnet50", 75, seed=1, steps=1, CHECK="on")

    def test_moved(self):
        """Cold blocks make room for new ones, and content is proven right at each move."""
        for overlap in ("on", "careful", "trust", "off"):
            device = self.check_spill("resnet50", 75, streams=4, seed=3, VERIFY="on",
                                      OVERLAP=overlap)
            self.assertGreater(device["moves"], 0)
            self.assertGreater(device["spilled_bytes"], device["placed_bytes"])


class Moves(harness.Case):
    """The program that uses memory while it is moved."""
    def moves(self, mode, seed=1, **options):
        options = {"SIM_MEMORY": "64MiB", "SIM_SEED": seed, "CHECK": "on", **options}
        result = self.run_program(MOVES, mode, allow=[SPILL_LINE], **options)
        device = result.device()
        self.assertEqual(device["ooms"], 0)
        for gauge in ("live_bytes", "committed_bytes", "host_bytes"):
            self.assertEqual(device[gauge], 0, gauge)
        return device

    def test_writes_during_moves(self):
        for options in ({}, {"VERIFY": "on"}, {"OVERLAP": "off"}, {"OVERLAP": "careful"},
                        {"SIM_UNMAP": "chunk"}, {"OVERLAP": "trust"}):
            for mode in ("writes", "threads"):
                for seed in (1, 2, 3):
                    with self.subTest(mode, seed=seed, **options):
                        device = self.moves(mode, seed, **options)
                        self.assertGreater(device["moves"], 0)
                        if mode == "writes":
                            self.assertGreater(device["promoted_bytes"], 0)

    def test_what_a_move_must_not_wait_for(self):
        for mode in ("spin", "wait", "callback", "copy"):
            for overlap in ("on", "off"):
                with self.subTest(mode, overlap=overlap):
                    device = self.moves(mode, OVERLAP=overlap, MOVE_WAIT=5)
                    self.assertEqual(device["moves"], 0)
                    self.assertGreaterEqual(device["abandoned_moves"], 1)
                    self.assertGreater(device["placed_bytes"], 0)

    def test_memory_of_the_program_itself(self):
        """A cuMemCreate that does not fit gets a chunk of the host, and is in the books."""
        device = self.moves("create")
        self.assertGreater(device["placed_bytes"], 10 * MIB)
        self.assertLessEqual(device["committed_peak_bytes"], 64 * MIB)
        self.assertEqual(device["vmm_bytes"], 0)
        self.assertEqual(device["vmm_host_bytes"], 0)

    def test_memory_of_a_graph_stays(self):
        device = self.moves("capture")
        self.assertEqual(device["moves"], 0)
        self.assertGreater(device["placed_bytes"], 0)


    def test_a_peer_uses_the_memory(self):
        """Its work is waited for, and what was moved is mapped for it as well."""
        for options in ({}, {"VERIFY": "on"}, {"OVERLAP": "off"}, {"OVERLAP": "trust"}):
            for seed in (1, 2, 3):
                with self.subTest(seed=seed, **options):
                    device = self.moves("peer", seed, SIM_DEVICES=2, **options)
                    self.assertGreater(device["moves"], 0)
        device = self.moves("peer-spin", SIM_DEVICES=2, MOVE_WAIT=5)
        self.assertEqual(device["moves"], 0)
        self.assertGreaterEqual(device["abandoned_moves"], 1)

    def test_pinned_by_the_program(self):
        device = self.moves("pin")
        self.assertEqual(device["moves"], 0)
        self.assertGreater(device["placed_bytes"], 0)
        self.assertGreater(self.moves("unpin")["moves"], 0)

    def test_registered_memory_stays(self):
        device = self.moves("registered")
        self.assertEqual(device["moves"], 0)
        self.assertGreater(device["placed_bytes"], 0)

    def check_kept(self, mode, count):
        """The granules of the blocks that the program names are never unmapped while it lives, but
        others are moved."""
        log = self.folder / f"log-{mode}"
        result = self.run_program(MOVES, mode, allow=[SPILL_LINE], SIM_MEMORY="64MiB", SIM_LOG=log)
        self.assertGreater(result.device()["moves"], 0)
        kept = [(int(start, 16), int(start, 16) + int(size, 16))
                for start, size in re.findall(r"keep (\w+) (\w+)", result.stdout)]
        self.assertEqual(len(kept), count)
        unmapped = 0
        for line in log.read_text().splitlines():
            if " cuMemcpyDtoH_v2 = " in line:
                break # the program looks at what is there, and is done
            match = re.search(r" cuMemUnmap = 0 0x(\w+) size=(\d+)", line)
            if match:
                first, end = int(match[1], 16), int(match[1], 16) + int(match[2])
                unmapped += 1
                for start, stop in kept:
                    inside = -(-start // (2 * MIB)) * 2 * MIB, stop // (2 * MIB) * 2 * MIB
                    self.assertFalse(first < inside[1] and inside[0] < end, line)
        self.assertGreater(unmapped, 0)

    def test_priority_by_the_program(self):
        """What has priority stays, although it is oldest."""
        self.check_kept("priority", 7)

    def test_memory_that_libraries_are_told_of_stays(self):
        os.environ["SPW_TEST_FOLDER"] = str(harness.PROGRAMS)
        self.addCleanup(os.environ.pop, "SPW_TEST_FOLDER")
        self.check_kept("told", 10)
        self.check_kept("told-next", 10)

    @unittest.skipIf(harness.SANITIZED, "an interpreter without the sanitizer cannot load it")
    def test_program_without_cuda(self):
        """The interface answers before CUDA is in use, and says so."""
        program = ("import ctypes; own = ctypes.CDLL(None)\n"
                   "print(own.spillway_mark_step(), own.spillway_pin(1, 1, 1),"
                   " own.spillway_priority(1, 1, 1), own.spillway_version())")
        done = self.run_command([sys.executable, "-c", program], harness.environment())
        self.assertEqual((done.stdout, done.stderr), ("3 3 3 2\n", ""))


class Through(harness.Case):
    """Kernels whose arguments do not name what they write to, although they are trusted."""
    def through(self, way, seed, allow=(), **options):
        result = self.run_program(THROUGH, way, allow=[SPILL_LINE, *allow], SIM_MEMORY="64MiB",
                                  SIM_SEED=seed, OVERLAP="trust", **options)
        self.assertEqual(result.stdout, "0 words wrong\n")
        return result

    def test_addresses_in_memory(self):
        for way in ("name", "copy", "once", "copied", "rows", "batch", "global", "pinned",
                    "managed"):
            second = 0
            for seed in (1, 2):
                with self.subTest(way, seed=seed):
                    device = self.through(way, seed).device()
                    self.assertGreater(device["moves"], 0)
                    second += device["second_copies"]
            self.assertGreater(second, 0, way)

    def test_tensor_maps(self):
        """They name a block, so that others may move meanwhile."""
        for seed in (1, 2):
            with self.subTest(seed=seed):
                device = self.through("map", seed).device()
                self.assertGreater(device["moves"], device["second_copies"])

    def test_told_where_any_kernel_may_find_them(self):
        line = "addresses were copied to 0x[0-9a-f]+, where any kernel may find them"
        said = self.through("global", 1, LOG="info", allow=["mode auto", line]).said()
        self.assertEqual(len([text for text in said if re.search(line, text)]), 1)


class Beside(harness.Case):
    """A kernel runs until something is submitted later. Where arguments are trusted, what they do
    not name is moved nevertheless."""
    def beside(self, mode, **options):
        result = self.run_program(BESIDE, mode, allow=[SPILL_LINE], SIM_MEMORY="64MiB",
                                  CHECK="on", **options)
        self.assertIn("\n0 words wrong", "\n" + result.stdout)
        return result.device()

    def test_what_nothing_uses(self):
        for mode in ("nothing", "half"):
            for seed in (1, 2, 3):
                with self.subTest(mode, seed=seed):
                    device = self.beside(mode, SIM_SEED=seed, OVERLAP="trust",
                                         MOVE_WAIT=1000)
                    self.assertGreater(device["moves_at_work"], 0)
                    self.assertEqual(device["placed_bytes"], 0)

    def test_what_may_be_in_use(self):
        for mode, overlap in (("all", "trust"), ("unknown", "trust"), ("nothing", "on"),
                              ("nothing", "careful")):
            with self.subTest(mode, overlap=overlap):
                device = self.beside(mode, SIM_SEED=1, OVERLAP=overlap, MOVE_WAIT=100)
                self.assertGreater(device["placed_bytes"], 0)


class Evidence(harness.Case):
    """Whether a kernel writes to nothing but what its arguments name: believed once it was looked
    at for long enough."""
    FOUND = r"a kernel wrote to memory that no argument names"

    def periodic(self, steps, *modes, allow=(), status=0, **options):
        """The program checks its content."""
        options = {"SIM_MEMORY": "64MiB", "MOVE_WAIT": 1000, **options}
        self.result = self.run_program(PERIODIC, steps, *modes, status=status,
                                       allow=[SPILL_LINE, *allow], **options)
        device = self.result.device()
        self.assertEqual(device["ooms"], 0)
        for gauge in ("live_bytes", "committed_bytes", "host_bytes") if status == 0 else ():
            self.assertEqual(device[gauge], 0, gauge)
        return device

    def test_earned(self):
        """From then on what no argument names is copied once, but for one move in sixteen."""
        for seed in (1, 2):
            with self.subTest(seed=seed):
                short = self.periodic(10, "named", SIM_SEED=seed)
                long = self.periodic(30, "named", SIM_SEED=seed)
                self.assertGreaterEqual(short["audits"], 4)
                self.assertGreater(long["believed_moves"], short["believed_moves"] + 16)
                self.assertLessEqual(long["audits"], 5 + long["believed_moves"] / 15)
                self.assertEqual(long["failed_audits"], 0)

    def test_found(self):
        """A kernel that finds addresses in memory: told once, and nothing is lost, neither then
        nor later."""
        for options in ({"SIM_SEED": 1, "CHECK": "on"}, {"SIM_SEED": 2, "VERIFY": "on"},
                        {"SIM_SEED": 3, "SIM_UNMAP": "chunk"}):
            with self.subTest(**options):
                device = self.periodic(12, "unnamed", allow=[self.FOUND], **options)
                lines = [line for line in self.result.said() if re.search(self.FOUND, line)]
                self.assertEqual(len(lines), 1, self.result.stderr)
                self.assertRegex(lines[0], r"to the block of 3\.\d+ MiB at 0x\w+ \(.*periodic.*\)\."
                                           r" Its move lost nothing.*held back$")
                self.assertEqual((device["failed_audits"], device["believed_moves"]), (1, 0))
                self.assertGreater(device["moves"], 4)

    def test_others_do_not_look(self):
        """Being careful loses nothing, trusting does: that is what audits are for."""
        for overlap in ("careful", "off"):
            device = self.periodic(8, "unnamed", SIM_SEED=1, OVERLAP=overlap)
            self.assertEqual((device["audits"], device["believed_moves"]), (0, 0))
        self.periodic(8, "unnamed", SIM_SEED=1, OVERLAP="trust", status=1,
                      allow=["does not give back access"])
        self.assertRegex(self.result.stdout, f"words wrong|= {ILLEGAL_ADDRESS}$")

    def test_another_order(self):
        """What is believed of one order is not of another."""
        for seed in (1, 2):
            with self.subTest(seed=seed):
                device = self.periodic(10, "named", "otherwise", SIM_SEED=seed)
                self.assertGreaterEqual(device["audits"], 8)
                self.assertGreater(device["believed_moves"], 8)

    def test_another_kernel(self):
        """Nor is it of kernels that were not launched before."""
        for seed in (1, 2):
            with self.subTest(seed=seed):
                device = self.periodic(12, "named", "unnamed", allow=[self.FOUND], SIM_SEED=seed)
                self.assertGreater(device["believed_moves"], 0)
                self.assertEqual(device["failed_audits"], 1)

    def test_content_that_is_not_kept(self):
        """What the simulated GPU has no room for proves nothing, and is no reason to say so."""
        for verify in ("off", "on"):
            device = self.periodic(8, "named", allow=["move no data"], status=1, SIM_SEED=1,
                                   SIM_PAYLOAD="80MiB", VERIFY=verify)
            self.assertGreater(device["moves"], 8)
            self.assertEqual(device["failed_audits"], 0)

    def test_unknown_arguments(self):
        """Nothing can be found out, and most first copies are not made."""
        device = self.periodic(12, "unknown", SIM_SEED=1)
        self.assertEqual((device["audits"], device["believed_moves"]), (0, 0))
        self.assertGreater(device["moves"], 16)
        self.assertLess(device["second_copies"], device["moves"])


class Told(Spill):
    def test_one_line_and_a_paragraph(self):
        result = self.spill("resnet50", 75, allow=[r"^spillway: "], seed=1, SUMMARY="on")
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
        """The host is bounded too, and the line at the end says so."""
        result = self.spill("resnet50", 75, allow=[OOM_LINE], status=1, HOST_LIMIT="100MiB")
        device = result.device()
        self.assertEqual(device["host_limit_bytes"], 100 * MIB)
        self.assertLessEqual(device["host_peak_bytes"], 100 * MIB)
        self.assertGreaterEqual(device["ooms"], 1)

    def test_sites_tell_the_tiers(self):
        """More may be on the host at exit than is live: free memory is there too."""
        stats = self.folder / "stats.json"
        self.spill("resnet50", 75, seed=1, STATS=stats)
        report = json.loads(stats.read_text())
        report["devices"][0].update(live_bytes=3 * MIB, host_bytes=8 * MIB)
        stats.write_text(json.dumps(report))
        said = self.run_command([harness.COMMAND, "sites", stats], harness.environment()).stdout
        self.assertRegex(said.splitlines()[-1],
                         r"^device 0 by tier, free memory included: device [0-9.]+ \w+ at exit,"
                         r" 1\.06 GiB at the peak; host 8 MiB at exit, [0-9.]+ MiB at the peak$")

    def test_default_is_half_of_the_host(self):
        result = self.spill("resnet50", 75, seed=1, SIM_HOST_MEMORY="3GiB")
        self.assertEqual(result.device()["host_limit_bytes"], 3 * GIB // 2)

    def test_half_of_a_share_of_the_host(self):
        result = self.spill("resnet50", 75, seed=1, SIM_HOST_MEMORY="50%")
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.assertAlmostEqual(result.device()["host_limit_bytes"] / machine, 1 / 4, delta=0.01)

    def test_more_than_the_machine(self):
        result = self.spill("resnet50", 75, seed=1,
                            allow=["HOST_LIMIT=9GiB is more than the 3 GiB that"],
                            SIM_HOST_MEMORY="3GiB", HOST_LIMIT="9GiB")
        self.assertEqual(result.device()["host_limit_bytes"], 3 * GIB // 2)

    def test_without_a_node_of_the_host(self):
        """A driver that does not say which node is the device's: node 0, as without NUMA."""
        result = self.spill("resnet50", 75, seed=1, SIM_FAIL="cuDeviceGetAttribute:2+")
        self.assertGreater(result.device()["moves"], 0)

    def test_driver_without_memory_of_the_host(self):
        result = self.spill("resnet50", 75, status=1, SIM_HOST_NUMA="off",
                            SIM_FAIL="cuMemHostAlloc:2+",
                            allow=["its memory cannot go on on the host", "out of memory"])
        self.assertEqual(len([line for line in result.said() if "cannot go on" in line]), 1)


class Pinned(Spill):
    """Devices that cannot map chunks of the host: new blocks in page-locked memory, no moves."""
    OPTIONS = {"SIM_HOST_NUMA": "off"}
    LINE = "device 0 cannot map memory of the host as its own: new blocks go to page-locked"

    def test_traces(self):
        for options in ({"seed": 1}, {"seed": 2, "streams": 4}, {"seed": 1, "way": "sync"},
                        {"seed": 1, "steps": 1, "CHECK": "on"}):
            device = self.check_spill("resnet50", 75, allow=[self.LINE], **options, **self.OPTIONS)
            self.assertEqual(device["moves"], 0)
            self.assertEqual(device["spilled_bytes"], device["placed_bytes"])
            self.assertLessEqual(device["host_peak_bytes"], device["host_limit_bytes"])

    def test_budget(self):
        result = self.spill("resnet50", 75, allow=[self.LINE, OOM_LINE], status=1,
                            HOST_LIMIT="100MiB", **self.OPTIONS)
        self.assertLessEqual(result.device()["host_peak_bytes"], 100 * MIB)
        self.assertGreaterEqual(result.device()["ooms"], 1)

    def test_told_once(self):
        result = self.spill("resnet50", 75, allow=[self.LINE], seed=1, **self.OPTIONS)
        self.assertEqual(len([line for line in result.said() if "page-locked" in line]), 1)

    def test_use(self):
        """Kernels, graphs, callbacks: whatever is under way, nobody waits for ever."""
        for mode in ("writes", "threads", "spin", "wait", "callback", "copy", "capture", "faults"):
            with self.subTest(mode):
                result = self.run_program(MOVES, mode, allow=[SPILL_LINE, self.LINE],
                                          SIM_MEMORY="64MiB", SIM_SEED=1, CHECK="on",
                                          **self.OPTIONS)
                device = result.device()
                self.assertGreater(device["placed_bytes"], 0)
                self.assertEqual(device["moves"], 0)
                for gauge in ("live_bytes", "committed_bytes", "host_bytes"):
                    self.assertEqual(device[gauge], 0, gauge)

    def test_doctor(self):
        """It says where blocks go and what is missing."""
        for options, expected in (({}, "| 0 | host chunks: "),
                                  (self.OPTIONS, "| 0 | page-locked memory: new blocks only"),
                                  ({**self.OPTIONS, "SIM_FAIL": "cuMemHostAlloc:1+"}, "| nowhere")):
            result = self.run_command([harness.COMMAND, "doctor"],
                                      harness.environment(preload=False, **options))
            self.assertIn(expected, result.stdout)
        self.assertIn("cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY", result.stdout)

    def test_answers(self):
        for options in ({}, self.OPTIONS):
            with self.subTest(**options):
                result = self.run_program(MOVES, "pointers", SIM_MEMORY="64MiB", CHECK="on",
                                          allow=[SPILL_LINE, self.LINE, "CUDA IPC"], **options)
                self.assertGreater(result.device()["spilled_bytes"], 0)


class NativeCache(harness.Case):
    """PyTorch's own allocator, as far as it matters here: a library of its name."""
    def test_cache_goes_first(self):
        result = self.run_program(harness.ROOT / "tests/spill/native_cache", allow=[SPILL_LINE],
                                  SIM_MEMORY="64MiB")
        self.assertEqual(result.stdout.splitlines(), [
            "first: had after 0 refusals",
            "into the cache's place: had after 1 refusals",
            "beyond the device: had after 1 refusals",
            "and again: had after 1 refusals",
            "another caller: 0",
        ])
        self.assertEqual(result.device()["ooms"], 0)
        # The first allocation that was refused found its room in the cache.
        self.assertLess(result.device()["host_peak_bytes"], 64 * MIB)


class Long(Spill):
    def test_matrix(self):
        if not LONG:
            self.skipTest("only with --long")
        for name in test_replay.NAMES:
            for percent in (90, 75, 50):
                for streams in (1, 4):
                    for seed in range(20):
                        self.check_spill(name, percent, streams=streams, seed=seed)


if __name__ == "__main__":
    if LONG:
        sys.argv.append("Long")
    harness.main()
