#!/usr/bin/env python3
"""Programs that use memory while it migrates, and those for which a migration must not wait."""
import collections
import os
import re
import sys
import unittest

from spill import (LONG, NO_REST, NO_REST_LINE, PATIENT, PINNED, PINNED_LINE, SEEDS,
                   SPILL_LINE)
import harness
from harness import MIB

MOVES = harness.ROOT / "tests/spill/moves"
BESIDE = harness.ROOT / "tests/spill/beside"
OUTSIDE = harness.ROOT / "tests/spill/outside"
PIECES = harness.ROOT / "tests/spill/pieces"
NATIVE_CACHE = harness.ROOT / "tests/spill/native_cache"
RANGE = harness.ROOT / "tests/spill/range"
UNSEEN = harness.ROOT / "tests/spill/unseen"
LIBRARY = UNSEEN / "libnvoptix.so.1"
HANDLES = harness.ROOT / "tests/spill/handles"
THROUGH = harness.ROOT / "tests/spill/through"
CARRIES = harness.ROOT / "tests/spill/carries"


class Moves(harness.Case):
    """Programs of `moves` with the default mode."""
    def moves(self, mode, seed=1, **options):
        options = {"SIM_MEMORY": "64MiB", "SIM_SEED": seed, "CHECK": "on", **PATIENT, **options}
        result = self.run_program(MOVES, mode, allow=[SPILL_LINE], **options)
        device = result.device()
        self.assertEqual(device["ooms"], 0)
        for gauge in ("live_bytes", "committed_bytes", "host_bytes"):
            self.assertEqual(device[gauge], 0, gauge)
        return device

    def test_writes_during_moves(self):
        for options in ({}, {"VERIFY": "on"}, {"OVERLAP": "off"},
                        {"SIM_UNMAP": "chunk"}, {"OVERLAP": "guarded"}):
            for mode in ("writes", "threads"):
                for seed in SEEDS:
                    with self.subTest(mode, seed=seed, **options):
                        device = self.moves(mode, seed, **options)
                        self.assertGreater(device["moves"], 0)
                        if mode == "writes":
                            self.assertGreater(device["promoted_bytes"], 0)

    def test_what_a_move_must_not_wait_for(self):
        for mode in ("spin", "wait", "callback", "copy"):
            for overlap in ("safe", "guarded", "off"):
                with self.subTest(mode, overlap=overlap):
                    device = self.moves(mode, OVERLAP=overlap, MOVE_WAIT=5)
                    self.assertEqual(device["moves"], 0)
                    self.assertGreaterEqual(device["abandoned_moves"], 1)
                    self.assertGreater(device["placed_bytes"], 0)

    def test_first_shortage(self):
        """It does not wait for pending work either, though the host tier is not open yet."""
        result = self.run_program(MOVES, "first", allow=[SPILL_LINE], timeout=60,
                                  SIM_MEMORY="64MiB", CHECK="on")
        self.assertGreater(result.device()["host_peak_bytes"], 0)

    def test_request_that_can_never_be_had(self):
        """It is refused before anything migrates for it, and before the host tier is tried."""
        result = self.run_program(MOVES, "impossible", allow=["out of memory on device 0"],
                                  SIM_MEMORY="64MiB", HOST_LIMIT="64MiB", CHECK="on", **PATIENT)
        device = result.device()
        self.assertEqual(device["ooms"], 6)
        self.assertEqual(device["spilled_bytes"], 0)
        self.assertEqual(device["host_peak_bytes"], 0)

    def test_beside_a_graph(self):
        """What it does not name moves; test_graphs.py has the rest."""
        self.assertGreater(self.moves("capture")["moves"], 0)

    def test_driver_needs_more_than_is_spare(self):
        """Blocks go to the host for it when giving back the spare chunks was not enough."""
        result = self.run_program(OUTSIDE, allow=[SPILL_LINE], SIM_MEMORY="64MiB", CHECK="on",
                                  **PATIENT)
        device = result.device()
        self.assertGreater(device["moves"], 0)
        self.assertGreater(device["forward_retries"], 1)

    def test_a_peer_uses_the_memory(self):
        """A migration waits for the peer's work, and maps the new memory for the peer too."""
        for options in ({}, {"VERIFY": "on"}, {"OVERLAP": "off"}, {"OVERLAP": "guarded"}):
            for seed in SEEDS:
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
        result = self.run_program(MOVES, mode, allow=[SPILL_LINE], SIM_MEMORY="64MiB", SIM_LOG=log,
                                  **PATIENT)
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
        """Blocks of higher priority stay, although they are oldest."""
        self.check_kept("priority", 7)

    def test_memory_that_libraries_are_told_of_stays(self):
        os.environ["SPW_TEST_FOLDER"] = str(harness.PROGRAMS)
        self.addCleanup(os.environ.pop, "SPW_TEST_FOLDER")
        self.check_kept("told", 10)
        self.check_kept("told-next", 10)

    @unittest.skipIf(harness.SANITIZED, "an interpreter without the sanitizer cannot load it")
    def test_program_without_cuda(self):
        """Before CUDA is in use, the functions answer NOT_INITIALIZED."""
        program = ("import ctypes; own = ctypes.CDLL(None)\n"
                   "print(own.spillway_mark_step(), own.spillway_pin(1, 1, 1),"
                   " own.spillway_priority(1, 1, 1), own.spillway_version())")
        done = self.run_command([sys.executable, "-c", program], harness.environment())
        self.assertEqual((done.stdout, done.stderr), ("3 3 3 2\n", ""))


class Handles(harness.Case):
    """Kernels whose parameters the driver is asked for. What it does with a handle of the wrong
    kind is not documented."""
    def calls(self, kind, handles):
        log = self.folder / f"log-{kind}-{handles}"
        result = self.run_program(HANDLES, kind, allow=[SPILL_LINE], SIM_MEMORY="64MiB",
                                  SIM_HANDLES=handles, SIM_LOG=log, **PATIENT)
        self.assertEqual(result.stdout, "0 words wrong\n")
        return collections.Counter(re.findall(r" (cu\w+GetParamInfo) = ", log.read_text()))

    def test_functions(self):
        """A kernel's function is never asked about them, not even without parameters."""
        for handles in ("mixed", "checked", "unchecked"):
            with self.subTest(handles):
                calls = self.calls("functions", handles)
                self.assertGreater(calls["cuFuncGetParamInfo"], 2)
                self.assertNotIn("cuKernelGetParamInfo", calls)

    def test_kernels(self):
        """They are asked about as kernels where the driver takes no other handle."""
        self.assertNotIn("cuKernelGetParamInfo", self.calls("kernels", "mixed"))
        for handles in ("checked", "unchecked"):
            with self.subTest(handles):
                self.assertGreater(self.calls("kernels", handles)["cuKernelGetParamInfo"], 2)


# A device that ends at its own end, and one that ends at the limit.
FULL = ({}, {"LIMIT": "60MiB", "SIM_MEMORY": "128MiB"})


class Pieces(harness.Case):
    """Physical memory that the program creates itself, beside 42 MiB of blocks."""
    def pieces(self, count, way, created=None, allow=(), **options):
        result = self.run_program(PIECES, count, way, allow=[SPILL_LINE, *allow], CHECK="on",
                                  **{"SIM_MEMORY": "64MiB", **PATIENT, **options})
        made = int(re.fullmatch(r"(\d+) created\n0 words wrong\n", result.stdout)[1])
        if created is not None:
            self.assertEqual(made, created)
        device = result.device()
        for gauge in ("live_bytes", "committed_bytes", "host_bytes", "vmm_bytes",
                      "vmm_host_bytes"):
            self.assertEqual(device[gauge], 0, gauge)
        return device, made

    def test_a_range_is_never_filled(self):
        """PyTorch reads past the end of a segment that one tensor fills."""
        result = self.run_program(RANGE, allow=[SPILL_LINE, "out of memory"], SIM_MEMORY="64MiB",
                                  CHECK="on")
        self.assertEqual(result.stdout.splitlines(), [
            "larger than the range: 17",
            "again: 17",
            "almost all of it: 17",
            "the rest: 1",
            "a small range: 8",
        ])
        self.assertEqual(result.stderr.count("the addresses that were reserved for it are used up"),
                         2)
        self.assertNotIn("policy rule", result.stderr)
        device = result.device()
        self.assertEqual(device["ooms"], 2)
        for gauge in ("live_bytes", "committed_bytes", "host_bytes", "vmm_bytes",
                      "vmm_host_bytes"):
            self.assertEqual(device[gauge], 0, gauge)

    def test_blocks_make_room(self):
        """Whoever creates it, and wherever the room ends: at the limit, or at the device's end."""
        for options in FULL:
            for way in ("own", "pytorch", "handles", "rdma"):
                with self.subTest(way, **options):
                    device, _ = self.pieces(12, way, created=12, **options)
                    self.assertEqual(device["placed_bytes"], 0)
                    self.assertGreaterEqual(device["spilled_bytes"], 26 * MIB)

    def test_beyond_the_device(self):
        """Only memory of PyTorch's goes to the host."""
        for options in FULL:
            for way in ("pytorch", "plain"):
                with self.subTest(way, **options):
                    device, _ = self.pieces(20, way, created=20, **options)
                    self.assertGreaterEqual(device["placed_bytes"], 16 * MIB)
                    self.assertLessEqual(device["committed_peak_bytes"], 64 * MIB)
            for way in ("own", "handles", "rdma"):
                with self.subTest(way, **options):
                    device, made = self.pieces(20, way, allow=["out of memory on device 0"],
                                               **options)
                    self.assertEqual(made, 15)
                    self.assertEqual(device["placed_bytes"], 0)
                    self.assertEqual(device["ooms"], 1)

    def test_limit_above_the_device(self):
        """The driver refuses it then, and what it was charged is given back."""
        for way, created in (("pytorch", 20), ("own", 15)):
            with self.subTest(way):
                device, _ = self.pieces(20, way, created=created, LIMIT="256MiB",
                                        allow=["more than device 0 has", "out of memory"])
                self.assertLessEqual(device["committed_peak_bytes"], 64 * MIB)


class Unseen(harness.Case):
    """A library of the driver's submits work that does not pass the entries."""
    def unseen(self, *arguments, allow=(), **options):
        result = self.run_program(UNSEEN / "unseen", *arguments, allow=[SPILL_LINE, *allow],
                                  CHECK="on", SIM_MEMORY="64MiB", **PATIENT, **options)
        self.assertEqual(result.stdout, "0 words wrong\n")
        for gauge in ("live_bytes", "committed_bytes", "host_bytes"):
            self.assertEqual(result.device()[gauge], 0, gauge)
        return result

    def test_without(self):
        device = self.unseen().device()
        self.assertGreater(device["moves"], 0)
        self.assertEqual(device["unseen_refusals"], 0)

    def test_nothing_moves(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                result = self.unseen(LIBRARY, SIM_SEED=seed, SUMMARY="on", LOG="info",
                                     allow=["spillway: "])
                device = result.device()
                self.assertEqual(device["moves"] + device["prefetches"], 0)
                self.assertGreater(device["placed_bytes"], 0)
                self.assertGreater(device["unseen_refusals"], 0)
                self.assertEqual(result.stderr.count("libnvoptix.so is loaded: from now on no "
                                                     "block moves"), 1)
                self.assertIn("a library whose GPU work spillway does not see", result.stderr)

    def test_nothing_moves_any_more(self):
        """Also the moves that have begun end."""
        for overlap in ("safe", "guarded", "off"):
            for seed in SEEDS:
                with self.subTest(overlap, seed=seed):
                    device = self.unseen(LIBRARY, "late", SIM_SEED=seed, OVERLAP=overlap).device()
                    self.assertGreater(device["moves"], 0)


class Through(harness.Case):
    """Kernels that write through hidden pointers, with OVERLAP=guarded."""
    def through(self, way, seed, allow=(), **options):
        result = self.run_program(THROUGH, way, allow=[SPILL_LINE, *allow], SIM_MEMORY="64MiB",
                                  SIM_SEED=seed, OVERLAP="guarded", **PATIENT, **options)
        self.assertEqual(result.stdout, "0 words wrong\n")
        return result

    def test_addresses_in_memory(self):
        for way in ("name", "copy", "once", "graph", "copied", "rows", "batch", "global",
                    "graph-global", "pinned", "managed"):
            for seed in SEEDS:
                with self.subTest(way, seed=seed):
                    self.assertGreater(self.through(way, seed).device()["moves"], 0)

    def test_tensor_maps(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.assertGreater(self.through("map", seed).device()["moves"], 0)

    def test_told_where_any_kernel_may_find_them(self):
        line = "addresses were copied to 0x[0-9a-f]+, where any kernel may read them"
        said = self.through("global", 1, LOG="info",
                            allow=["mode auto", "chunks at", line]).said()
        self.assertEqual(len([text for text in said if re.search(line, text)]), 1)

    def test_which_copies_carry_addresses(self):
        line = "addresses were copied to 0x[0-9a-f]+, where any kernel may read them"
        ways = {"word": True, "half word": False, "last word": True, "next word": False,
                "across words": False, "other alignment": True, "no block": False, "batch": True,
                "rows": True, "between rows": False, "narrow rows": True, "no rows": False,
                "slices": True}
        for way, carries in ways.items():
            with self.subTest(way):
                result = self.run_program(CARRIES, way, OVERLAP="guarded", SIM_MEMORY="64MiB",
                                          LOG="info", **PATIENT,
                                          allow=[SPILL_LINE, "mode auto", "chunks at", line])
                self.assertEqual(result.stdout, "ok\n")
                said = [text for text in result.said() if re.search(line, text)]
                self.assertEqual(len(said), int(carries))


class Beside(harness.Case):
    """A kernel runs until something is submitted later. With `guarded`, what it does not name is
    moved nevertheless."""
    def beside(self, mode, **options):
        result = self.run_program(BESIDE, mode, allow=[SPILL_LINE], SIM_MEMORY="64MiB",
                                  CHECK="on", **options)
        self.assertIn("\n0 words wrong", "\n" + result.stdout)
        return result.device()

    def test_what_nothing_uses(self):
        for mode in ("nothing", "half", "maps"):
            for seed in SEEDS:
                with self.subTest(mode, seed=seed):
                    device = self.beside(mode, SIM_SEED=seed, OVERLAP="guarded", **PATIENT)
                    self.assertGreater(device["moves_at_work"], 0)
                    self.assertEqual(device["placed_bytes"], 0)

    def test_no_access_again_to_what_is_in_use(self):
        """Unused granules move while their neighbours are in use."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                device = self.beside("third", SIM_SEED=seed, OVERLAP="guarded", **PATIENT)
                self.assertGreater(device["moves_at_work"], 0)

    def test_what_may_be_in_use(self):
        for mode, overlap in (("all", "guarded"), ("all-maps", "guarded"),
                              ("unknown", "guarded"), ("nothing", "safe")):
            with self.subTest(mode, overlap=overlap):
                device = self.beside(mode, SIM_SEED=1, OVERLAP=overlap, MOVE_WAIT=100)
                self.assertGreater(device["placed_bytes"], 0)


class WithoutContextEvents(harness.Case):
    """Drivers that cannot say when a device is at rest: memory is placed and never moved, and
    nothing waits without end."""
    MODES = ("threads", "spin", "wait", "callback", "copy", "capture", "pin", "priority", "peer",
             "peer-spin", "faults")

    def test_programs(self):
        for mode in self.MODES:
            with self.subTest(mode):
                rounds = (6,) if mode == "threads" and not LONG else ()
                result = self.run_program(MOVES, mode, *rounds, SIM_MEMORY="64MiB", SIM_SEED=1,
                                          SIM_DEVICES=2, CHECK="on", **NO_REST,
                                          allow=[SPILL_LINE, NO_REST_LINE])
                device = result.device()
                self.assertEqual(result.stderr.count("cannot be seen at rest"), 1)
                self.assertGreater(device["placed_bytes"], 0)
                self.assertEqual(device["moves"], 0)
                self.assertEqual(device["ooms"], 0)
                for gauge in ("live_bytes", "committed_bytes", "host_bytes"):
                    self.assertEqual(device[gauge], 0, gauge)

    def test_doctor(self):
        result = self.run_command([harness.COMMAND, "doctor"],
                                  harness.environment(preload=False, **NO_REST))
        self.assertIn("| 0 | host chunks: new blocks only, which stay there | cuCtxRecordEvent",
                      result.stdout)


class Pinned(harness.Case):
    """Devices that cannot map host chunks: new blocks are page-locked and never migrate."""
    def test_use(self):
        """No program hangs, whatever is under way: kernels, graphs, callbacks."""
        for mode in ("writes", "threads", "spin", "wait", "callback", "copy", "capture", "faults"):
            with self.subTest(mode):
                rounds = (6,) if mode == "threads" and not LONG else ()
                result = self.run_program(MOVES, mode, *rounds, allow=[SPILL_LINE, PINNED_LINE],
                                          SIM_MEMORY="64MiB", SIM_SEED=1, CHECK="on",
                                          **PINNED)
                device = result.device()
                self.assertGreater(device["placed_bytes"], 0)
                self.assertEqual(device["moves"], 0)
                for gauge in ("live_bytes", "committed_bytes", "host_bytes"):
                    self.assertEqual(device[gauge], 0, gauge)

    def test_doctor(self):
        """The user is told where blocks go and what is missing."""
        for options, expected in (({}, "| 0 | host chunks: "),
                                  (PINNED, "| 0 | page-locked memory: new blocks only"),
                                  ({**PINNED, "SIM_FAIL": "cuMemHostAlloc:1+"}, "| nowhere")):
            result = self.run_command([harness.COMMAND, "doctor"],
                                      harness.environment(preload=False, **options))
            self.assertIn(expected, result.stdout)
        self.assertIn("cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY", result.stdout)

    def test_answers(self):
        for options in ({}, PINNED):
            with self.subTest(**options):
                result = self.run_program(MOVES, "pointers", SIM_MEMORY="64MiB", CHECK="on",
                                          allow=[SPILL_LINE, PINNED_LINE, "CUDA IPC"], **options)
                self.assertGreater(result.device()["spilled_bytes"], 0)


class NativeCache(harness.Case):
    """PyTorch's own allocator, as far as it matters here: a library of its name."""
    def test_cache_goes_first(self):
        result = self.run_program(NATIVE_CACHE, allow=[SPILL_LINE], SIM_MEMORY="64MiB")
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

    def test_a_refusal_that_was_final(self):
        """It is counted and reported. After it, the same request is not refused."""
        result = self.run_program(NATIVE_CACHE, "once", allow=[SPILL_LINE, "out of memory"],
                                  SIM_MEMORY="64MiB")
        self.assertEqual(result.stdout.splitlines(),
                         ["first: had", "beyond the device: not had", "and again: had"])
        self.assertEqual(result.device()["ooms"], 1)
        self.assertEqual(result.device()["last_oom"]["api"], "cudaMalloc")
        self.assertEqual(result.device()["last_oom"]["bytes"], 44 * MIB)
        self.assertEqual(result.stderr.count("out of memory on device 0: requested 44 MiB"), 1)
        self.assertIn("held by 1 call site", result.stderr)


if __name__ == "__main__":
    harness.main()
