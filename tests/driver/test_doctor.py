#!/usr/bin/env python3
"""spillway's command on a machine that has NVIDIA's driver library and no device."""
import json
import unittest

import libraries
import machine

TABLES = ["driver", "functions", "missing", "open", "entry_points", "disabled"]
REACHED = "reaches spillway; not called without a device"


@unittest.skipIf(machine.SANITIZED, "the doctor's children are preloaded without the sanitizer")
class Doctor(machine.Case):
    def run_here(self, *words, folders=()):
        return self.run_command([machine.COMMAND, *words],
                                machine.environment(self.branch, (), folders))

    def doctor(self, branch):
        self.branch = branch
        folder = libraries.runtime_folder(libraries.runtime_of(branch))
        done = self.run_here("doctor", "--json", folders=[folder])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "spillway: doctor: the CUDA driver does not start (cuInit: "
                         "CUDA_ERROR_NO_DEVICE); spillway sim runs programs on a simulated GPU\n")
        return json.loads(done.stdout)

    def test_driver_and_what_is_missing(self):
        for branch in libraries.drivers():
            with self.of(branch):
                tables = self.doctor(branch)
                self.assertEqual(list(tables), TABLES)
                found = {row["what"]: row["found"] for row in tables["driver"]}
                self.assertEqual(found["library's version"], libraries.full_version(branch))
                self.assertEqual(found["driver API"], f"CUDA {libraries.runtime_of(branch)}")
                self.assertEqual(found["devices"], 0)
                missing = [row["missing"] for row in tables["missing"]]
                self.assertEqual(missing[0], "cuInit: CUDA_ERROR_NO_DEVICE")
                self.assertIn("there is no /dev/nvidia0", missing)
                self.assertGreater(len(tables["open"]), 3)
                self.assertEqual(tables["disabled"], [])

    def test_every_entry_point_is_live(self):
        for branch in libraries.drivers():
            with self.of(branch):
                points = self.doctor(branch)["entry_points"]
                self.assertEqual([row["result"] for row in points], [REACHED] * 7)

    def test_functions_that_the_driver_lacks(self):
        rows = machine.rows()
        for branch in libraries.drivers():
            with self.of(branch):
                table = {row["functions"]: row for row in self.doctor(branch)["functions"]}
                lacking = [row for row in rows if row.since > branch.cuda]
                self.assertEqual(table["in this driver"]["count"], len(rows) - len(lacking))
                for row in lacking:
                    version = f"{row.since // 1000}.{row.since % 1000 // 10}"
                    self.assertIn(f"lacking, of CUDA {version}", table)
                calls = table.get("lacking, of those that spillway calls", {}).get("names", "")
                self.assertEqual("cuCtxRecordEvent" in calls, branch.cuda < 12050)

    def test_run_says_that_there_is_no_device(self):
        for branch in libraries.drivers():
            with self.of(branch):
                self.branch = branch
                done = self.run_here("run", "--", "true")
                self.assertEqual(done.returncode, 125)
                self.assertEqual(done.stderr, "spillway: run: no usable GPU: the CUDA driver does "
                                 "not start (cuInit: CUDA_ERROR_NO_DEVICE); spillway sim runs a "
                                 "command on a simulated GPU\n")


if __name__ == "__main__":
    machine.main()
