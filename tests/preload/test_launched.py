#!/usr/bin/env python3
"""Programs that spillway cannot be in, and runs that used no device: one line says why."""
import json
import os
import pathlib
import platform
import shutil
import struct
import textwrap
import unittest

import harness
from harness import COMMAND, PROGRAMS

FIT = PROGRAMS / "fit"
ENV = pathlib.Path(shutil.which("env")).resolve()

# By the processor: its name in messages, its number in ELF files, the dynamic linkers of glibc and
# musl, and the code of exit(7).
MACHINES = {
    "x86_64": ("x86-64", 62, b"/lib64/ld-linux-x86-64.so.2\0", b"ld-musl-x86_64.so.1",
               b"\xb8\x3c\x00\x00\x00\xbf\x07\x00\x00\x00\x0f\x05"),
    "aarch64": ("AArch64", 183, b"/lib/ld-linux-aarch64.so.1\0", b"ld-musl-aarch64.so.1",
                b"\xa8\x0b\x80\xd2\xe0\x00\x80\xd2\x01\x00\x00\xd4"),
}
OWN, OWN_NUMBER, LINKER, MUSL, EXIT_7 = MACHINES[platform.machine()]
OTHER, OTHER_NUMBER = next(row[:2] for row in MACHINES.values() if row[0] != OWN)


def static_program(dynamic=b""):
    """An ELF file that ends with exit code 7; with a dynamic section it is position-independent."""
    parts = 2 if dynamic else 1
    begin = 64 + 56 * parts
    base = 0 if dynamic else 0x400000
    size = begin + len(EXIT_7) + len(dynamic)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 3 if dynamic else 2, OWN_NUMBER, 1, base + begin, 64, 0, 0, 64, 56, parts,
        0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)
    at = begin + len(EXIT_7)
    more = struct.pack("<IIQQQQQQ", 2, 4, at, at, at, len(dynamic), len(dynamic), 8)
    return head + load + (more if dynamic else b"") + EXIT_7 + dynamic


class Launched(harness.Case):
    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(0o755)
        return path

    def wrapped(self, why):
        """A reason as the verdict shows it: on two lines, or on one before what is next."""
        lines = textwrap.wrap(why, 80 - len("spillway:   why: "), break_on_hyphens=False)
        self.assertLessEqual(len(lines), 2)
        return [f"  why: {lines[0]}", f"       {lines[1]}" if len(lines) > 1 else
                "  next: read the output of the command itself"]

    def sim(self, *words, status=0, flags=()):
        """The lines that spillway says, without its beginning."""
        result = self.run_command([COMMAND, "sim", *flags, "--", *words],
                                  harness.environment(False, False))
        self.assertEqual(result.status, status, result.stderr)
        self.stdout = result.stdout
        return [line[len("spillway: "):] for line in result.said()
                if line.startswith("spillway: ") and "simulated GPU (" not in line]

    @unittest.skipIf(harness.SANITIZED, "a static program is not built with the sanitizer")
    def test_static(self):
        flags_1_pie = struct.pack("<QQQQ", 0x6ffffffb, 0x08000000, 0, 0)
        for content in (static_program(), static_program(flags_1_pie)):
            path = self.write("static", content)
            why = f"{path} is static, so that nothing can be preloaded into it"
            self.assertEqual(self.sim(path, status=7), [
                f"sim: {why}; programs that it starts are served",
                "verdict: none: failed (exit code 7) before it used a device",
                *self.wrapped(why)])
        script = self.write("script", f"#!/usr/bin/env -S {path} x\n".encode())
        self.assertIn(why, self.sim(script, status=7)[0])

    def test_foreign(self):
        """Nor is it given to the shell, which would try to read it."""
        program = bytearray(ENV.read_bytes())
        program[18:20] = struct.pack("<H", OTHER_NUMBER)
        path = self.write("foreign", program)
        why = f"{path} is a program for {OTHER}, and spillway for {OWN}"
        self.assertEqual(self.sim(path, status=125), [f"sim: {path}: cannot be started: {why}"])
        result = self.run_command([COMMAND, "fit", "--gpus", "l4-24g", "--", path],
                                  harness.environment(False, False))
        self.assertTrue(result.stderr.endswith(f"fit: {path}: cannot be started: {why}\n"),
                        result.stderr)
        script = self.write("script", f"#!{path}\n".encode())
        self.assertEqual(self.sim(script, status=125),
                         [f"sim: {script}: cannot be started: {why}"])

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_script_without_a_first_line(self):
        """The shell runs it, as execvp does."""
        path = self.write("script", b"exit 3\n")
        self.assertEqual(self.sim(path, status=3), [
            "verdict: none: failed (exit code 3) before it used a device",
            *self.wrapped("no process is known to have initialised CUDA")])

    @unittest.skipIf(harness.SANITIZED, "env is not built with the sanitizer")
    def test_musl(self):
        """It would not start with a library for glibc preloaded, so nothing is."""
        path = self.write("musl", ENV.read_bytes().replace(LINKER, MUSL.ljust(len(LINKER), b"\0")))
        (self.folder / MUSL.decode()).symlink_to(LINKER[:-1].decode())
        lines = self.sim(path)  # in that folder, where the kernel looks for the linker
        self.assertEqual(lines[0], f"sim: {path} is built for musl, and spillway for glibc; it "
                                   "runs without spillway")
        self.assertNotIn("LD_PRELOAD=", self.stdout)
        self.assertIn("LD_LIBRARY_PATH=", self.stdout)

    @unittest.skipIf(os.getuid() != 0, "only root gives files away")
    @unittest.skipIf(harness.SANITIZED, "env is not built with the sanitizer")
    def test_set_id(self):
        path = self.write("setuid", ENV.read_bytes())
        os.chown(path, 65534, -1)
        path.chmod(0o4755)
        self.assertEqual(self.sim(path)[0],
                         f"sim: {path} runs as another user or group (setuid), so that nothing is "
                         "preloaded into it; it runs without spillway")

    def test_runtime_that_is_linked_in(self):
        program = PROGRAMS / "linked_runtime"
        why = f"NVIDIA's CUDA runtime in {program} works only with NVIDIA's driver"
        for flags in ((), ("--no-pool",)):
            result = self.run_command([COMMAND, "sim", *flags, "--", program],
                                      harness.environment(False, False))
            self.assertEqual((result.status, result.stdout), (0, "801\n"))
            self.assertIn(f"spillway sim: {why}: its calls fail (801). Link it with -cudart "
                          "shared, or run it on a GPU\n", result.stderr)
            self.assertIn("spillway: verdict: none: no process is known to have used a simulated "
                          "device\nspillway:   why: only NVIDIA's driver serves NVIDIA's CUDA "
                          f"runtime in\nspillway:        {str(program)[:60]}", result.stderr)

    def test_device_that_was_not_used(self):
        self.assertEqual(self.sim(FIT), [
            "verdict: none: no process is known to have used a simulated device",
            "  why: no process is known to have initialised CUDA",
            "  next: give the program that uses the GPU after --"])
        self.assertEqual(self.sim(FIT, "start", "fail", status=3), [
            "verdict: none: failed (exit code 3) before it used a device",
            *self.wrapped("CUDA was initialised, but nothing was allocated or launched")])
        self.assertEqual(self.sim(FIT, "kill", status=137), [
            "verdict: none: failed (exit code 137, signal 9) before it used a device",
            *self.wrapped("no process is known to have initialised CUDA")])
        for words, full in (((FIT,), "no process is known to have used a simulated device, nor to "
                                     "have initialised CUDA"),
                            ((FIT, "start"), "no process is known to have used a simulated device: "
                                             "CUDA was initialised, but nothing was allocated or "
                                             "launched")):
            self.assertEqual(self.sim(*words, flags=["--verbose"])[-3], "verdict: none: " + full)

    def test_run_within_sim(self):
        """The verdict is about what runs under the inner command."""
        path, verdict = self.folder / "stats.json", self.folder / "verdict.json"
        for flags in ((), ("--no-pool",)):
            lines = self.sim(COMMAND, "run", "--stats", path, "--", FIT, "take",
                             flags=("--memory", "256MiB", "--json", verdict, *flags))
            self.assertEqual(lines[0], "verdict: fits in 256 MiB, 208 MiB to spare (program alone)")
            device, = json.loads(verdict.read_text())["devices"]
            self.assertTrue(device["pooled"])
            used, = json.loads(path.read_text())["devices"]
            self.assertEqual(used["live_peak_bytes"], 48 << 20)
            path.unlink()


if __name__ == "__main__":
    harness.main()
