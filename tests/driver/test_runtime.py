#!/usr/bin/env python3
"""NVIDIA's own runtime, dynamic and static, on NVIDIA's driver library without a device: it reaches
the driver through spillway, and the program behaves as without."""
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import libraries
import machine

CC = os.environ["BUILD_CC"].split()
WITNESS = machine.PROGRAMS / "libwitness.so"
SOURCE = machine.HERE / "runtime_program.c"
NEEDS_CUDA_13 = 13000
ENDS_WITH = {True: "cudaErrorNoDevice", False: "cudaErrorInsufficientDriver"}
built = tempfile.TemporaryDirectory()


@functools.cache
def dynamic(version):
    """The program, linked with a runtime's shared library."""
    output = pathlib.Path(built.name) / f"dynamic-{version}"
    library, = libraries.runtime_folder(version).glob("libcudart.so.*")
    subprocess.run([*CC, str(SOURCE), "-o", str(output), str(library)], check=True)
    return output


@functools.cache
def static(version):
    """The program with the runtime inside; None if the wheel has no static library."""
    output = pathlib.Path(built.name) / f"static-{version}"
    folder = libraries.runtime_folder(version)
    parts = [folder / name for name in ("libcudart_static.a", "libculibos.a")]
    parts = [str(part) for part in parts if part.exists()]
    if not parts:
        return None
    subprocess.run([*CC, str(SOURCE), "-o", str(output), *parts, "-ldl", "-lrt", "-lpthread"],
                   check=True)
    return output


def of_nvcc(nvcc):
    """The program and a kernel, built by nvcc with the runtime inside."""
    output = pathlib.Path(built.name) / "nvcc"
    source = output.with_suffix(".cu")
    shutil.copy(SOURCE, source)
    subprocess.run([nvcc, "-cudart", "static", "-o", str(output), str(source)], check=True)
    return output


@unittest.skipIf(machine.SANITIZED, "the programs are built without the sanitizer")
class Runtime(machine.Case):
    def check(self, program, version, branch):
        """The program ends as it does bare, with the error of a machine without a device; a driver
        that is older than the runtime's major version is refused by the runtime before that."""
        bare = self.run_both([program], branch, [libraries.runtime_folder(version)])
        self.assertEqual((bare.returncode, bare.stderr), (0, ""))
        served = int(version.split(".")[0]) <= branch.cuda // 1000
        lines = bare.stdout.splitlines()
        self.assertIn(str(branch.cuda), lines)
        self.assertIn(f"cudaGetDeviceCount(&number): {ENDS_WITH[served]}", lines)
        self.assertIn(f"cudaMalloc(&address, 1 << 20): {ENDS_WITH[served]}", lines)

    def asked(self, program, version, branch, preload):
        """What the runtime asked of the driver, and whose functions it got: the witness's lines."""
        log = self.folder / "witness"
        log.unlink(missing_ok=True)
        done = self.run_command(
            [program], machine.environment(branch, (WITNESS, *preload),
                                           [libraries.runtime_folder(version)],
                                           WITNESS_LOG=str(log)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.rsplit(" ", 1) for line in log.read_text().splitlines()]

    def check_doors(self, program, version, branch, golden):
        """The runtime asks for the names of the golden list, with and without spillway; under it
        every name that the driver has is answered with spillway's entry."""
        bare = self.asked(program, version, branch, ())
        pool = self.asked(program, version, branch, (machine.OBJECT,))
        self.assertEqual([question for question, _ in bare], golden)
        self.assertEqual([question for question, _ in pool], golden)
        for (question, own), (_, answer) in zip(bare, pool):
            expected = "none" if own == "none" else "spillway:" + self.symbol(question)
            self.assertEqual(answer, expected, question)

    @staticmethod
    def symbol(question):
        """The symbol of the row that answers a question."""
        door, name, *rest = question.split()
        if door == "dlsym":
            return name
        found = [row for row in machine.rows()
                 if row.base == name and row.since <= int(rest[0]) and row.flags == int(rest[1])]
        return max(found, key=lambda row: row.since).symbol if found else "no row for " + question

    @staticmethod
    def golden(version):
        """The questions of a version of the runtime, as names.txt of this folder lists them."""
        lists, current = {}, None
        for line in (machine.HERE / "names.txt").read_text().splitlines():
            if line.startswith("runtime "):
                current = lists.setdefault(line.split()[1], [])
            elif line and not line.startswith("#"):
                current.append(line.strip())
        return lists[version]

    def test_dynamic(self):
        self.assertEqual(libraries.runtimes(), list(libraries.RUNTIMES))
        for branch in libraries.drivers():
            with self.of(branch):
                for version in libraries.runtimes():
                    with self.subTest(runtime=version):
                        self.check(dynamic(version), version, branch)

    def test_static(self):
        versions = [version for version in libraries.runtimes() if static(version)]
        self.assertEqual(versions, ["12.9", "13.0"])
        for branch in libraries.drivers():
            with self.of(branch):
                for version in versions:
                    with self.subTest(runtime=version):
                        self.check(static(version), version, branch)

    def test_asks_through_spillway(self):
        for branch in libraries.drivers():
            with self.of(branch):
                for version in libraries.runtimes():
                    for program in (dynamic(version), static(version)):
                        if program is not None:
                            with self.subTest(runtime=version, program=program.name):
                                self.check_doors(program, version, branch, self.golden(version))

    @unittest.skipUnless(shutil.which("nvcc"), "no nvcc")
    def test_program_of_nvcc(self):
        program = of_nvcc(shutil.which("nvcc"))
        for branch in libraries.drivers():
            with self.of(branch):
                bare = self.run_both([program], branch)
                self.assertIn("cudaGetDeviceCount(&number): cudaError", bare.stdout)
                asked = self.asked(program, libraries.runtime_of(branch), branch, (machine.OBJECT,))
                self.assertIn(["dlsym cuGetProcAddress_v2", "spillway:cuGetProcAddress_v2"], asked)
                self.assertIn(["v2 cuInit 2000 0", "spillway:cuInit"], asked)


if __name__ == "__main__":
    machine.main()
