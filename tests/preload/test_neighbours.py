#!/usr/bin/env python3
"""Processes of one run share the memory of the simulated devices."""
import json
import os
import signal
import subprocess
import sys
import textwrap
import unittest

import harness
from harness import COMMAND, MIB, PROGRAMS, SIM

PROGRAM = PROGRAMS / "neighbours"
OUT_OF_MEMORY = "2"
HAS_NVML = (SIM / "libnvidia-ml.so.1").exists()


class Process:
    """A process of the run that does what it is told."""
    def __init__(self, case, env, *words, program=PROGRAM):
        self.child = subprocess.Popen([program, *map(str, words)], env=env, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        case.addCleanup(self.end)
        self.pid = self.child.pid

    def tell(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def say(self, line):
        self.tell(line)
        return self.child.stdout.readline().rstrip("\n")

    def kill(self, number=signal.SIGKILL):
        self.child.send_signal(number)

    def end(self):
        if self.child.poll() is None:
            self.child.stdin.close()
            self.child.wait(timeout=60)
        if not self.child.stdin.closed:
            self.child.stdin.close()
        self.child.stdout.close()


class Neighbours(harness.Case):
    """Without the pool: what the simulated driver answers."""
    def setUp(self):
        super().setUp()
        self.env = harness.environment(preload=False, SIM_MEMORY="1GiB", SIM_DEVICES=2,
                                       RUN_DIR=self.folder)

    def start(self, *words, **more):
        return Process(self, {**self.env, **more}, *words)

    def test_memory_of_one_is_missing_for_the_other(self):
        one, other = self.start(), self.start()
        self.assertEqual(one.say("ask"), "1024 1024")
        self.assertEqual(one.say("take 600"), "0")
        self.assertEqual(one.say("ask"), "424 1024")
        self.assertEqual(other.say("ask"), "424 1024")
        self.assertEqual(other.say("take 500"), OUT_OF_MEMORY)
        self.assertEqual(other.say("take 424"), "0")
        self.assertEqual(one.say("take 2"), OUT_OF_MEMORY)
        self.assertEqual(one.say("free"), "0")
        self.assertEqual(other.say("take 600"), "0")
        self.assertEqual(other.say("ask"), "0 1024")

    def test_devices_are_counted_as_the_machine_counts_them(self):
        one, other = self.start(1), self.start(0, CUDA_VISIBLE_DEVICES="1")
        third = self.start(0)
        self.assertEqual(one.say("take 600"), "0")
        self.assertEqual(other.say("ask"), "424 1024")
        self.assertEqual(third.say("ask"), "1024 1024")

    def test_one_memory(self):
        """Of a GPU without memory of its own, the processes and their own memory have parts of one.
        If they take more, the machine dies, and all of them with it. spillway refuses before."""
        machine = {"SPILLWAY_SIM_PROFILE": "gb10", "SPILLWAY_SIM_DEVICES": "1"}
        one, other = self.start(**machine), self.start(**machine)
        self.assertEqual(one.say("take 600"), "0")
        free, total = map(int, other.say("ask").split())
        self.assertEqual(total, 1024)
        self.assertIn(free, range(400, 424))
        polite = self.start(**machine, LD_PRELOAD=str(harness.OBJECT), SPILLWAY_SUMMARY="off",
                            SPILLWAY_MEMORY_RESERVE="64MiB", SPILLWAY_LOG="error:" +
                            str(self.folder / "log"))
        self.assertEqual(polite.say("take 380"), OUT_OF_MEMORY)
        self.assertEqual(polite.say("take 300"), "0")
        self.assertEqual(other.say("take 200"), "")
        self.assertEqual(other.child.wait(timeout=60), -signal.SIGKILL)
        self.assertEqual(one.say("take 2"), "")  # though it would have fitted
        self.assertEqual(one.child.wait(timeout=60), -signal.SIGKILL)

    def test_a_killed_process_gives_back_what_it_held(self):
        one, other = self.start(), self.start()
        self.assertEqual(one.say("take 900"), "0")
        self.assertEqual(other.say("take 200"), OUT_OF_MEMORY)
        one.kill()
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)  # it is not reaped yet
        self.assertEqual(other.say("take 200"), "0")
        self.assertEqual(other.say("ask"), "824 1024")

    def test_a_stopped_process_keeps_what_it_holds(self):
        one, other = self.start(), self.start()
        self.assertEqual(one.say("take 900"), "0")
        one.kill(signal.SIGSTOP)
        self.assertEqual(other.say("take 200"), OUT_OF_MEMORY)
        self.assertEqual(other.say("take 100"), "0")
        one.kill(signal.SIGCONT)
        self.assertEqual(one.say("free"), "0")
        self.assertEqual(other.say("ask"), "924 1024")

    def test_a_process_that_ended_is_forgotten(self):
        for _ in range(3):
            one = self.start()
            self.assertEqual(one.say("take 900"), "0")
            one.end()
        self.assertEqual(self.start().say("ask"), "1024 1024")

    @unittest.skipIf(harness.SANITIZED, "the interpreter is not built with the sanitizer")
    def test_a_program_started_with_exec_holds_nothing(self):
        script = textwrap.dedent("""
            import ctypes, os, sys
            driver, block = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
            context = ctypes.c_void_p()
            assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(
                ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
            assert driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(900 << 20)) == 0
            os.execv(sys.argv[1], sys.argv[1:])
            """)
        one = Process(self, self.env, "-c", script, PROGRAM, program=sys.executable)
        self.assertEqual(one.say("ask"), "1024 1024")

    def test_management_library(self):
        if not HAS_NVML:
            self.skipTest("no NVML: scripts/setup --torch")
        one, other, third = self.start(), self.start(), self.start()
        self.assertEqual(one.say("take 600"), "0")
        self.assertEqual(other.say("take 100"), "0")
        seen = ["700", *sorted((f"{one.pid}:600", f"{other.pid}:100"))]
        for process in one, other, third:
            used, *listed = process.say("list").split()
            self.assertEqual([used, *sorted(listed)], seen)
        one.end()
        self.assertEqual(third.say("list"), f"100 {other.pid}:100")

    def test_other_runs_are_apart(self):
        (self.folder / "other").mkdir()
        one, other = self.start(), self.start(SPILLWAY_RUN_DIR=str(self.folder / "other"))
        self.assertEqual(one.say("take 900"), "0")
        self.assertEqual(other.say("take 900"), "0")

    def test_a_file_that_is_no_such_file(self):
        for content in (b"x" * 100, bytes(1 << 20)[:-1] + b"x", os.urandom(1 << 20)):
            (self.folder / "devices").write_bytes(content)
            self.assertEqual(self.start().say("take 900"), "0")

    def test_many_processes_at_once(self):
        """Their sum is never more than there is, and all of it can be had."""
        processes = [self.start() for _ in range(8)]
        for process in processes:
            for _ in range(20):
                process.tell("take 10")
        taken = [sum(process.child.stdout.readline() == "0\n" for _ in range(20))
                 for process in processes]
        self.assertEqual(sum(taken), 102)
        self.assertEqual(processes[0].say("ask"), "4 1024")


class Verdict(harness.Case):
    SCRIPT = textwrap.dedent("""
        import subprocess, sys
        both = [subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True) for _ in range(2)]
        for size in 600, 300:
            for process in both[:1] if size == 600 else both[1:]:
                process.stdin.write(f"take {size}\\n")
                process.stdin.flush()
                assert process.stdout.readline() == "0\\n"
        for process in both:
            process.communicate()
        """)

    @unittest.skipIf(harness.SANITIZED, "the interpreter is not built with the sanitizer")
    def test_verdict_speaks_of_the_device(self):
        verdict = self.folder / "verdict.json"
        result = self.run_command([COMMAND, "sim", "--memory", "1GiB", "--json", verdict,
                                   "--verbose", "--", sys.executable, "-c", self.SCRIPT, PROGRAM],
                                  harness.environment(False, False, SUMMARY="off"))
        self.assertEqual(result.status, 0, result.stderr)
        line = next(line for line in result.stderr.splitlines() if "shared device 0" in line)
        self.assertRegex(line, r"2 processes shared device 0 and held up to 9[0-9]{2} MiB of it at "
                               r"a time: pid \d+ 6[0-9]{2} MiB, pid \d+ 3[0-9]{2} MiB; a real ")
        shared, = json.loads(verdict.read_text())["shared_devices"]
        self.assertEqual((shared["index"], shared["processes"]), (0, 2))
        self.assertGreaterEqual(shared["used_peak_bytes"], 900 * MIB)
        parts = [device["shared_peak_bytes"]
                 for device in json.loads(verdict.read_text())["devices"]]
        self.assertEqual(sum(parts), shared["used_peak_bytes"])


if __name__ == "__main__":
    harness.main()
