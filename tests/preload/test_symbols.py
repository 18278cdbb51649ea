#!/usr/bin/env python3
"""The symbols of libspillway.so: its needs, its exports, and its effects on other libraries."""
import re
import subprocess
import unittest

import harness

EXTRA_EXPORTS = {"dlsym", "dlvsym", "getenv"}


def output(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=True).stdout


def exports(path):
    """Name -> version ("" for none) of the symbols a library defines."""
    found = {}
    for line in output("readelf", "--dyn-syms", "--wide", path).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit() and fields[6] != "UND":
            if fields[4] in ("GLOBAL", "WEAK") and fields[5] == "DEFAULT":
                name, _, version = fields[7].partition("@")
                found[name] = version
    return found


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", path))


def listed():
    """The symbols of the .def files and of the public header."""
    names = set()
    for file in ("functions.def", "submit.def"):
        text = (harness.SOURCE / "src/driver" / file).read_text()
        names |= set(re.findall(r"^SPW_(?:FN|RUNTIME)\(\w+, (\w+),", text, re.MULTILINE))
        names |= set(re.findall(r"^SPW_REGISTER\(\w+, [^,]*, (\w+),", text, re.MULTILINE))
    header = (harness.SOURCE / "include/spillway.h").read_text()
    names |= set(re.findall(r"\b(spillway_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
    return names | EXTRA_EXPORTS


class Symbols(harness.Case):
    @unittest.skipIf(harness.SANITIZED, "a sanitizer adds its own")
    def test_needs_libc_only(self):
        self.assertEqual(needed(harness.OBJECT), ["libc.so.6"])

    @unittest.skipIf(harness.SANITIZED, "a sanitizer adds its own")
    def test_exports_are_the_list(self):
        self.assertEqual(sorted(exports(harness.OBJECT)), sorted(listed()))

    def test_exports_have_no_version(self):
        versioned = {name: version for name, version in exports(harness.OBJECT).items() if version}
        self.assertEqual(versioned, {})

    def test_versioned_runtime_is_hooked(self):
        """A program that binds cudaMalloc@libcudart.so.13 finds ours."""
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
        """(who, symbol) -> where it was bound, for everything but spillway itself."""
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
        self.assertEqual({symbol for _, symbol in changed} - EXTRA_EXPORTS, set())


if __name__ == "__main__":
    harness.main()
