#!/usr/bin/env python3
"""Libraries that share their memory with other processes get memory of the driver's."""
import json
import os
import unittest
import unittest.mock

import harness
from harness import MIB

FOLDER = harness.PROGRAMS / "sharing"
PROGRAM = FOLDER / "sharing"
NCCL = FOLDER / "libnccl.so.2"
HALO = FOLDER / "libhalo.so.2"
READ = "the child read 0x5a\nshared: 0\nfreed: 0\n"
SPILL_LINE = r"device 0 is full: for a block of .* on the host now; up to .* may be used"
OOM_LINE = r"out of memory on device 0: requested"


class Sharing(harness.Case):
    def share(self, library, way, *more, **options):
        return self.run_program(PROGRAM, library, way, *more, **options)

    def lines(self, result):
        return "".join(sorted(result.stdout.splitlines(keepends=True), reverse=True))

    def test_known_libraries(self):
        """By the runtime that the process shares, and by one of the library's own."""
        for way in ("runtime", "driver"):
            with self.subTest(way):
                bare = self.share(NCCL, way, preload=False)
                self.assertEqual(self.lines(bare), READ)
                result = self.share(NCCL, way)
                self.assertEqual(self.lines(result), READ)
                device = result.device()
                self.assertEqual(device["shared_allocs"], 1)
                self.assertEqual(device["passed_allocs"], 1)
                self.assertEqual(device["passed_bytes"], 0)
                self.assertEqual(device["live_bytes"], 0)
                self.assertEqual(device["live_peak_bytes"], 4 * MIB)
                self.assertEqual(device["allocs"], 0)
        result = self.share(NCCL, "stream")
        self.assertEqual(result.stdout, "shared: 0\nfreed: 0\n")
        self.assertEqual(result.device()["shared_allocs"], 1)

    @unittest.skipUnless((harness.SIM / "libnccl.so.2").exists(), "built without nccl.h")
    def test_simulated_nccl(self):
        """Its communicators need memory that other ranks can open."""
        for cumem, count in (("0", "shared_allocs"), ("1", "vmm_creates")):
            with self.subTest(NCCL_CUMEM_ENABLE=cumem):
                with unittest.mock.patch.dict(os.environ, {"NCCL_CUMEM_ENABLE": cumem}):
                    result = self.run_program(FOLDER / "communicator")
                self.assertEqual(result.stdout, "made: 0\ndestroyed: 0\n")
                self.assertEqual(result.device()[count], 1)
                self.assertEqual(result.device()["live_peak_bytes"], 2 * MIB)
                self.assertEqual(result.device()["live_bytes"], 0)

    def test_other_libraries(self):
        """They are served, and share blocks of the pool."""
        for way in ("runtime", "driver"):
            with self.subTest(way):
                result = self.share(HALO, way)
                self.assertEqual(self.lines(result), READ)
                self.assertEqual(result.device()["allocs"], 1)
                self.assertEqual(result.device()["passed_allocs"], 0)

    def test_libraries_that_the_user_names(self):
        for names in ("libhalo", "other,libhalo.so", ",libhalo.so.2,"):
            with self.subTest(names):
                self.assertEqual(self.lines(self.share(HALO, "runtime", PASS=names)), READ)
        for names in ("halo", "libhalo.so.2.1", "", ","):
            with self.subTest(names):
                result = self.share(HALO, "runtime", PASS=names)
                self.assertEqual(result.device()["allocs"], 1)

    def test_summary(self):
        result = self.share(NCCL, "runtime", SUMMARY="on", allow=["spillway"])
        self.assertIn("1 allocation left to the driver: 1 of libraries that share memory",
                      result.stderr)

    def test_full_device(self):
        """Blocks make room; what is shared stays on the device and counts against the limit."""
        for options in ({"SIM_MEMORY": "64MiB"}, {"LIMIT": "64MiB"}):
            for way in ("runtime", "driver", "handle"):
                with self.subTest(way, **options):
                    result = self.share(NCCL, way, "full", allow=[SPILL_LINE], CHECK="on",
                                        MOVE_WAIT=1000, **options)
                    self.assertEqual(result.stdout, "shared: 0\nfreed: 0\n")
                    device = result.device()
                    self.assertLessEqual(device["committed_peak_bytes"], 64 * MIB)
                    self.assertGreaterEqual(device["spilled_bytes"], 16 * MIB)
                    self.assertEqual(device["vmm_host_bytes"], 0)

    def test_policy(self):
        """A rule that puts everything on the host does not apply to what is shared."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "all", "match": {}, "action": {"placement": "host"}}]}))
        for library in (NCCL, HALO):
            with self.subTest(library.name):
                result = self.share(library, "handle", POLICY=policy,
                                    allow=["rule all cannot be applied .*: other devices"])
                self.assertEqual(result.stdout, "shared: 0\nfreed: 0\n")
                self.assertEqual(result.device()["host_peak_bytes"], 0)
        result = self.share(NCCL, "runtime", POLICY=policy)
        self.assertEqual(self.lines(result), READ)

    def test_request_that_can_never_be_had(self):
        """It is refused before any block moves for it."""
        for way in ("runtime", "handle"):
            with self.subTest(way):
                result = self.share(NCCL, way, "full", allow=[OOM_LINE, SPILL_LINE], LIMIT="20MiB",
                                    CHECK="on")
                self.assertEqual(result.stdout, "shared: 2\n")
                device = result.device()
                self.assertEqual(device["spilled_bytes"], device["placed_bytes"])

    def test_beyond_the_limit(self):
        """Where no block can make room, the device decides, as without spillway."""
        for way in ("runtime", "driver", "handle"):
            with self.subTest(way):
                result = self.share(NCCL, way, "full", SPILL="off", LIMIT="64MiB", CHECK="on")
                self.assertEqual(result.stdout, "shared: 0\nfreed: 0\n")
                device = result.device()
                self.assertGreater(device["committed_peak_bytes"], 64 * MIB)
                self.assertEqual(device["ooms"], 0)

    def test_full_device_without_spilling(self):
        """Out of memory, as without spillway."""
        for way in ("runtime", "driver", "handle"):
            with self.subTest(way):
                result = self.share(NCCL, way, "full", allow=[OOM_LINE], SIM_MEMORY="64MiB",
                                    SPILL="off")
                self.assertEqual(result.stdout, "shared: 2\n")
                self.assertEqual(result.device()["ooms"], 1)

    def test_free_memory(self):
        """What the program is told counts the memory of the library once."""
        for mode in ("auto", "observe"):
            with self.subTest(mode):
                result = self.share(NCCL, "runtime", "info", MODE=mode, LIMIT="64MiB",
                                    allow=["mode observe"])
                self.assertIn("free: 60 MiB of 64 MiB\n", result.stdout)


if __name__ == "__main__":
    harness.main()
