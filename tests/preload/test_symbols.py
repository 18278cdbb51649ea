#!/usr/bin/env python3
"""The libraries that libspillway.so needs, the symbols that it exports, and the bindings that it
changes."""
import platform
import re
import subprocess
import unittest

import harness

# Exports under names of the C library, with the versions that programs ask for. Who stands before
# and looks for the next one by its version finds ours only if it has that one.
OLD, NEW = ("GLIBC_2.17" if platform.machine() == "aarch64" else "GLIBC_2.2.5"), "GLIBC_2.34"
EXTRA_EXPORTS = {"dlsym": {OLD, NEW}, "dlvsym": {OLD, NEW}}


def output(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=True).stdout


def exports(path):
    """Name -> versions (none: an empty set) of the symbols a library defines."""
    found = {}
    for line in output("readelf", "--dyn-syms", "--wide", path).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit() and fields[6] not in ("UND", "ABS"):
            if fields[4] in ("GLOBAL", "WEAK") and fields[5] == "DEFAULT":
                name, _, version = fields[7].partition("@")
                found.setdefault(name, set()).update({version.lstrip("@")} - {""})
    return found


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", path))


def listed():
    """The symbols of the .def files and of the public header."""
    names = set()
    for file in ("functions.def", "submit.def"):
        text = (harness.SOURCE / "src/driver" / file).read_text()
        names |= set(re.findall(r"^SPW_(?:FN|RUNTIME|REGISTER)\((\w+),", text, re.MULTILINE))
    header = (harness.SOURCE / "include/spillway.h").read_text()
    names |= set(re.findall(r"\b(spillway_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
    return names | EXTRA_EXPORTS.keys()


class Symbols(harness.Case):
    @unittest.skipIf(harness.SANITIZED, "a sanitizer adds its own")
    def test_needs_libc_only(self):
        self.assertEqual(needed(harness.OBJECT), ["libc.so.6"])

    @unittest.skipIf(harness.SANITIZED, "a sanitizer adds its own")
    def test_exports_are_the_list(self):
        self.assertEqual(sorted(exports(harness.OBJECT)), sorted(listed()))

    def test_versions(self):
        """Functions of CUDA have none, so that they stand for those of every version."""
        found = {name: versions for name, versions in exports(harness.OBJECT).items() if versions}
        self.assertEqual(found, EXTRA_EXPORTS)

    def test_versioned_runtime_is_hooked(self):
        """A program that was linked to cudaMalloc@libcudart.so.13 finds our entry."""
        program = harness.PROGRAMS / "door_runtime"
        self.assertIn("libcudart.so.13", needed(program))
        self.assertRegex(output("readelf", "--dyn-syms", "--wide", program),
                         r"cudaMalloc@libcudart\.so\.13")
        env = harness.environment()
        env["LD_DEBUG"] = "bindings"
        result = self.run_command([program], env)
        for name in ("cudaMalloc", "cudaFree", "cudaMallocAsync", "cudaFreeAsync"):
            self.assertRegex(result.stderr,
                             rf"door_runtime \[0\] to \S*libspillway\.so \[0\]:.*`{name}'")

    def bindings(self, program, env):
        """(object, symbol) -> the library it was bound to, for all objects but libspillway.so."""
        env["LD_DEBUG"] = "bindings"
        env["LD_BIND_NOW"] = "1"
        result = self.run_command([program], env)
        self.assertEqual(result.status, 0, result.stderr)
        found = {}
        for who, where, symbol in re.findall(
                r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `([^']+)'",
                result.stderr):
            if "libspillway" not in who:
                found[who, symbol] = where
        return result.stdout, found

    @unittest.skipIf(harness.SANITIZED, "a sanitizer binds its own")
    @unittest.skipUnless((harness.PROGRAMS / "thrower").exists(), "no C++ compiler")
    def test_exceptions_bind_as_without(self):
        thrower = harness.PROGRAMS / "thrower"
        bare_output, bare = self.bindings(thrower, harness.environment(preload=False, sim=False))
        pool_output, pool = self.bindings(thrower, harness.environment(sim=False))
        self.assertEqual(bare_output, pool_output)
        self.assertTrue(any(symbol == "__cxa_throw" for _, symbol in bare))
        changed = {key for key in bare.keys() | pool.keys() if bare.get(key) != pool.get(key)}
        self.assertEqual({symbol for _, symbol in changed} - EXTRA_EXPORTS.keys(), set())


if __name__ == "__main__":
    harness.main()
