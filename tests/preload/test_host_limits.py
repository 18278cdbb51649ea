#!/usr/bin/env python3
"""The limits on host memory, by name: of the machine, its control groups, and of page-locked
memory, which WSL2, RLIMIT_MEMLOCK or the driver bounds far below the machine's memory."""
import json
import re

import harness
from harness import COMMAND, GIB, MIB, PROGRAMS

PROGRAM = PROGRAMS / "host_wall"
OPTIONS = {"SIM_MEMORY": "64MiB", "SIM_SEED": 1, "CHUNK": "2MiB"}
FULL = r"device 0 is full: for a block of .*\(the machine's memory sets the limit\)$"
OOM = r"out of memory on device 0"
WALL = r"the driver refused more page-locked memory: device 0 has spilled (\d+) MiB and may take "
PINNED = "device 0 cannot map host memory as its own"
NAMES = {"wsl": "WSL2's limit on page-locked memory", "memlock": r"RLIMIT_MEMLOCK \(ulimit -l\)",
         "driver": "the driver's limit on page-locked memory"}
PART = 8  # one in so many bytes below the wall is left to the program


class HostLimits(harness.Case):
    def machine(self, available=8 * GIB, **files):
        """A machine of 16 GiB, whose driver locks much less: SIM_HOST_MEMORY."""
        folder = self.folder / f"machine-{next(self.numbers)}"
        memory = f"MemTotal: {16 * GIB >> 10} kB\nMemAvailable: {available >> 10} kB\n"
        for name, text in {"proc/meminfo": memory, "sys/devices/system/node/has_memory": "0\n",
                           "sys/devices/system/node/has_cpu": "0\n", **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return {"SIM_ROOT": folder}

    def run_into_wall(self, wall, cause, *words, command=(PROGRAM,), allow=(), **options):
        result = self.run_program(*command, *(words or ("0",)), allow=[FULL, WALL, OOM, *allow],
                                  SIM_HOST_MEMORY=f"{wall}MiB", **OPTIONS, **options)
        line = next(line for line in result.said() if re.search(WALL, line))
        self.assertRegex(line, f"; the cause is {NAMES[cause]}, and the rest is for the program$")
        self.assertEqual(result.stderr.count("refused more page-locked memory"), 1)
        first = next(line for line in result.said() if re.search(OOM, line))
        self.assertRegex(first, rf"; host memory .* \({NAMES[cause]} sets the limit\)")
        return result

    def figures(self, result):
        device = result.device()
        return (device["host_bound_name"], device["host_wall_bytes"] // MIB,
                device["host_limit_bytes"] // MIB)

    def test_wsl(self):
        result = self.run_into_wall(32, "wsl", **self.machine(**{"dev/dxg": ""}))
        self.assertEqual(self.figures(result), ("wsl", 32, 32 - 32 // PART))
        self.assertEqual(result.stats["oom"]["host_bound"], "wsl")
        self.assertIn(f"blocks: {64 + 32} MiB\n", result.stdout)

    def test_memlock(self):
        command = ("sh", "-c", f"ulimit -l {5 << 10}; exec {PROGRAM} $0")
        result = self.run_into_wall(4, "memlock", command=command, **self.machine())
        self.assertEqual(self.figures(result), ("memlock", 4, 3))

    def test_driver(self):
        """A limit that does not explain the wall is not blamed for it."""
        command = ("sh", "-c", f"ulimit -l 1024; exec {PROGRAM} $0")
        result = self.run_into_wall(32, "driver", command=command, **self.machine())
        self.assertEqual(self.figures(result), ("driver", 32, 28))

    def test_page_locked_memory_of_the_tier(self):
        """Where no chunk of the host can be mapped, as on WSL2 itself."""
        result = self.run_into_wall(96, "wsl", allow=[PINNED], SIM_HOST_NUMA="off",
                                    **self.machine(**{"dev/dxg": ""}))
        name, wall, limit = self.figures(result)
        self.assertEqual(name, "wsl")
        self.assertLessEqual(wall, 96)
        self.assertEqual(limit, wall - wall // PART)

    def test_limits_of_the_machine_are_no_wall(self):
        group = {"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": f"{GIB}",
                 "sys/fs/cgroup/job/memory.current": f"{GIB - 48 * MIB}"}
        for bound, text, machine in (
                ("machine", "the machine's memory", self.machine(32 * MIB)),
                ("control-group", "the control group", self.machine(**group)),
                ("option", "SPILLWAY_HOST_LIMIT", self.machine() | {"HOST_LIMIT": "16MiB"})):
            with self.subTest(bound):
                result = self.run_program(PROGRAM, "0", allow=[
                    OOM, "the machine is short of host memory", rf"is full: .*\({text} sets the"],
                    **OPTIONS, **machine)
                self.assertEqual(result.device()["host_bound_name"], bound)
                self.assertEqual(result.device()["host_refusals"], 0)
                self.assertRegex(result.stderr, rf"; host memory .* \({text} sets the limit\)")

    def test_the_program_comes_first(self):
        """Host memory that no block uses is given back when the program locks pages."""
        result = self.run_into_wall(32, "wsl", "30", **self.machine(**{"dev/dxg": ""}))
        for name in "cuMemHostAlloc", "cuMemAllocHost", "cuMemHostRegister":
            self.assertIn(f"{name}: 0\n", result.stdout)
        self.assertGreater(result.device()["forward_retries"], 0)

    def test_blocks_are_in_the_way(self):
        line = r"refused the program 2 MiB of page-locked memory; spilled blocks occupy 32 MiB of "
        result = self.run_into_wall(32, "wsl", "2", "stay", allow=[line],
                                    **self.machine(**{"dev/dxg": ""}))
        self.assertIn("cuMemHostAlloc: 2\n", result.stdout)
        self.assertEqual(result.stderr.count("refused the program"), 1)

    def doctor(self, command=(COMMAND,), **options):
        done = self.run_command([*command, "doctor", "--json"], harness.environment(
            preload=False, **{"SIM_MEMORY": "64MiB", **options}))
        rows = json.loads(done.stdout)["host_limits"]
        return {row["limit"]: (row["allows"], row["remark"]) for row in rows}

    def test_verdict(self):
        group = {"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": f"{GIB}",
                 "sys/fs/cgroup/job/memory.current": f"{GIB - 160 * MIB}"}
        for files, bound, line in (
                (group, "control-group", "a smaller batch: on the host, the control group allows "),
                ({}, "option", "a --host-limit above 16 MiB, if the host has it")):
            limit = () if files else ("--host-limit", "16MiB")
            verdict = self.folder / f"verdict-{bound}.json"
            done = self.run_command(
                [COMMAND, "sim", "--memory", "64MiB", *limit, "--root",
                 self.machine(**files)["SIM_ROOT"], "--json", verdict, "--", PROGRAM, "0"],
                harness.environment(preload=False, sim=False))
            device, = json.loads(verdict.read_text())["devices"]
            self.assertEqual(device["host_bound"], bound)
            self.assertGreater(device["host_limit_bytes"], 0)
            self.assertIn(f"next: {line}", done.stderr)

    def test_first_line_of_a_run(self):
        line = ("run: on WSL2 no block moves to the host: new blocks that do not fit go to "
                "page-locked")
        for files, words, said in (({"dev/dxg": ""}, (), True), ({}, (), False),
                                   ({"dev/dxg": ""}, ("--summary", "off"), False)):
            done = self.run_command([COMMAND, "run", *words, "--", "true"], harness.environment(
                preload=False, **self.machine(**files)))
            self.assertEqual(line in done.stderr, said, done.stderr)

    def test_doctor(self):
        rows = self.doctor(SIM_HOST_MEMORY="160MiB", **self.machine(**{"dev/dxg": ""}))
        self.assertEqual(rows["the machine's memory"][0], "8 GiB available of 16 GiB")
        self.assertEqual(rows["the control group"][0], "no limit")
        self.assertEqual(rows["WSL2"][0], "yes")
        self.assertEqual(rows["page-locked memory"], ("128 MiB, and no more", NAMES["wsl"]))
        self.assertEqual(rows["**one device**"], ("112 MiB", f"{NAMES['wsl']} sets the limit"))

    def test_doctor_without_a_wall(self):
        group = {"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": f"{4 * GIB}",
                 "sys/fs/cgroup/job/memory.current": f"{GIB}"}
        command = ("sh", "-c", f"ulimit -l 2048; exec {COMMAND} $0 $1")
        rows = self.doctor(command, **self.machine(**group))
        self.assertEqual(rows["the control group"][0], "3 GiB left of 4 GiB")
        self.assertEqual(rows["RLIMIT_MEMLOCK (ulimit -l)"][0], "2 MiB")
        self.assertEqual(rows["WSL2"][0], "no")
        self.assertEqual(rows["page-locked memory"], ("at least 2 GiB", "more was not tried"))
        self.assertEqual(rows["**one device**"], ("1.50 GiB", "the control group sets the limit"))
        rows = self.doctor(HOST_LIMIT="1GiB", **self.machine(**group))
        self.assertEqual(rows["**one device**"], ("1 GiB", "SPILLWAY_HOST_LIMIT sets the limit"))


if __name__ == "__main__":
    harness.main()
