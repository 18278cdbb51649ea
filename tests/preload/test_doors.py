#!/usr/bin/env python3
"""Calls reach the pool by every entry point of the driver, once, with the same results as without
spillway."""
import unittest

import harness

BLOCK = harness.MIB + 512  # a block of the test programs, rounded up
OOM_LINE = r"out of memory"


class Doors(harness.Case):
    def check_device(self, device, blocks):
        self.assertEqual(device["allocs"], blocks)
        self.assertEqual(device["frees"], blocks)
        self.assertEqual(device["passed_allocs"], 0)
        self.assertEqual(device["live_bytes"], 0)
        self.assertEqual(device["live_peak_bytes"], BLOCK)
        for name in ("cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocAsync_ptsz"):
            self.assertEqual(device["driver_calls"].get(name, 0), 0)

    def check_driver_door(self, *command):
        result = self.run_both(*command, allow=[OOM_LINE])
        self.check_device(result.device(), blocks=4)
        self.assertEqual(result.device()["ooms"], 1)

    def test_linked(self):
        self.check_driver_door(harness.PROGRAMS / "door_linked")

    def test_dlsym(self):
        self.check_driver_door(harness.PROGRAMS / "door_lookup", "dlsym")

    def test_proc_address_of_cuda_11(self):
        self.check_driver_door(harness.PROGRAMS / "door_lookup", "proc_v1")

    def test_proc_address_of_cuda_12(self):
        self.check_driver_door(harness.PROGRAMS / "door_lookup", "proc_v2")

    def test_runtime(self):
        result = self.run_both(harness.PROGRAMS / "door_runtime", allow=[OOM_LINE])
        self.check_device(result.device(), blocks=6)
        self.assertEqual(result.device()["ooms"], 1)

    def test_runtime_on_two_devices(self):
        result = self.run_both(harness.PROGRAMS / "door_runtime", allow=[OOM_LINE], SIM_DEVICES=2)
        self.check_device(result.device(0), blocks=6)
        self.check_device(result.device(1), blocks=5)

    @unittest.skipIf(harness.SANITIZED, "a sanitizer has a heap of its own")
    def test_nothing_is_kept_for_each_call(self):
        result = self.run_program(harness.PROGRAMS / "repeated", allow=[OOM_LINE])
        for line in result.stdout.splitlines():
            kind, kib = line.rsplit(" ", 1)
            with self.subTest(kind):
                self.assertLess(int(kib), 40)  # 5,000 rounds

    def test_inert_when_switched_off(self):
        result = self.run_both(harness.PROGRAMS / "door_runtime", **{"": "off"})
        self.assertIsNone(result.stats)


if __name__ == "__main__":
    harness.main()
