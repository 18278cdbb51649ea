#!/usr/bin/env python3
"""Drivers that lack functions, a driver that looks like a real one, and machines without a driver
or without libcjson: spillway does what is left to do, and says what is missing."""
import json
import subprocess
import sys

import harness
from harness import MIB, PROGRAMS, SIM

IPC = PROGRAMS / "sharing/ipc"


class Lacking(harness.Case):
    def libraries(self, without=(), **more):
        """A folder with the simulated libraries, of which the driver does not have some functions:
        in this copy they have other names. `more`: other libraries, by the beginning of the name of
        their file."""
        folder = self.folder / f"libraries-{next(self.numbers)}"
        folder.mkdir()
        for path in SIM.glob("*.so.*"):
            (folder / path.name).symlink_to(path.resolve())
        driver = (SIM / "libcuda.so.1").read_bytes()
        for name in without:
            found = b"\0" + name.encode() + b"\0"
            self.assertIn(found, driver)
            driver = driver.replace(found, b"\0_" + found[2:])
        (folder / "libcuda.so.1").unlink()
        (folder / "libcuda.so.1").write_bytes(driver)
        for name, target in more.items():
            (folder / name.replace("_", ".")).symlink_to(target)
        return folder

    def run_with(self, folder, *command, **options):
        """The result of a program with these libraries."""
        stats = folder / "stats.json"
        env = harness.environment(**{"SUMMARY": "off", "CHECK": "on", "STATS": stats, **options})
        env |= {"LD_LIBRARY_PATH": str(folder), "XDG_CACHE_HOME": str(folder)}
        result = self.run_command(command, env)
        self.assertEqual(result.status, 0, result.stdout + result.stderr)
        self.assertNotIn("is broken", result.stderr)
        result.stats = json.loads(stats.read_text())
        return result

    def test_blocks_that_cannot_be_exported(self):
        folder = self.libraries(["cuMemExportToShareableHandle"])
        result = self.run_with(folder, IPC, "full", 4)
        self.assertEqual(sorted(result.stdout.splitlines()), ["other: 0 opened", "owner: shared 1"])
        self.assertIn("the driver has no memory that can be exported", result.stderr)
        self.assertEqual(result.device()["driver_calls"].get("cuMemcpyAsync", 0), 0)

    def test_blocks_that_cannot_be_imported(self):
        folder = self.libraries(["cuMemImportFromShareableHandle"])
        result = self.run_with(folder, IPC, "unable")
        self.assertEqual(result.stdout, "other: opened 801\n")

    def test_green_context_whose_context_cannot_be_asked_for(self):
        folder = self.libraries(["cuCtxFromGreenCtx"])
        result = self.run_with(folder, PROGRAMS / "midway", "green-unknown")
        self.assertEqual(result.stdout.count("CUDA_SUCCESS"), 2)
        self.assertIn("kept: 1", result.stdout)

    def test_no_driver(self):
        """Each call has its error, and nothing is written."""
        env = harness.environment(sim=False)
        asks = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"]
        if subprocess.run(asks, env=env, stderr=subprocess.DEVNULL).returncode == 0:
            self.skipTest("this machine has NVIDIA's driver")
        result = self.run_command([PROGRAMS / "driverless"], env)
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.assertEqual(result.stdout, "alloc: 302\nfree: 302\ninit: 302\nwait: 302\n")

    def test_driver_like_a_real_one(self):
        """The machine is the real one then: its memory is told. Room is left beside the pool."""
        folder = self.libraries(["spillway_sim_version"])
        result = self.run_with(folder, PROGRAMS / "sites", "take", "fill", SIM_MEMORY="2GiB",
                               SPILL="auto", HOST_LIMIT="16MiB")
        line = next(line for line in result.said() if line.startswith("spillway: out of memory"))
        self.assertRegex(line, r"; host memory [\d.]+ (B|MiB) of 16 MiB \(SPILLWAY_HOST_LIMIT "
                               r"sets the limit\), the machine has [\d.]+ "
                               r"[MG]iB available")
        self.assertRegex("\n".join(result.reports()[0]),
                         r"\nhost: [\d.]+ [MG]iB of [\d.]+ [MG]iB available\n")
        self.assertLess(result.device()["limit_bytes"], 2048 * MIB)
        self.assertGreater(result.device()["limit_bytes"], 1024 * MIB)

    def test_policy_without_libcjson(self):
        """A library of that name that has none of its functions is as good as none."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "all", "match": {}, "action": {"placement": "host"}}]}))
        for beside in ({}, {"libcjson_so_1": PROGRAMS / "libnvml_shim.so"}):
            result = self.run_with(self.libraries(**beside), PROGRAMS / "midway", "lazy",
                                   POLICY=policy)
            device = result.device()
            if beside:
                self.assertEqual(result.said(), [
                    f"spillway: {policy}: cannot read policies without libcjson.so.1; the default "
                    "policy is used"])
                self.assertEqual((device["committed_peak_bytes"], device["host_peak_bytes"]),
                                 (4 * MIB, 0))
                self.assertNotIn("rules", result.stats)
            else:
                self.assertEqual(result.said(), [])
                self.assertEqual((device["committed_peak_bytes"], device["host_peak_bytes"]),
                                 (0, 4 * MIB))


if __name__ == "__main__":
    harness.main()
