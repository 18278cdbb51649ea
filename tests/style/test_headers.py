#!/usr/bin/env python3
"""Headers: each compiles alone, opens with what it is for, and documents what it declares."""
import concurrent.futures
import os
import re
import subprocess
import unittest

import tree

BUILD = os.environ["BUILD_ROOT"]
CUDA = os.environ["BUILD_CUDA_HEADERS"]
HEADERS = tree.matching("src include", ".h")

# A declaration of a function: at the start of a line a type, a name, a parenthesis, and a semicolon
# before any brace.
NO_PROTOTYPE = (r"(?!\s|#|typedef|static|extern _Thread_local|extern \"C\"|"
                r"(struct|union|enum) \w+ \{)")
PROTOTYPE = re.compile(rf"^{NO_PROTOTYPE}[A-Za-z_][^;{{}}()=]*?\b(\w+)\([^{{}};]*?\)[^{{}};]*;",
                       re.MULTILINE | re.S)

# Headers of NVIDIA's libraries that only the shims need, where they are built.
NOT_INSTALLED = re.compile(r"fatal error: (cublas\w*|cudnn\w*|nvml)\.h: No such file")


def compile_alone(path, language="c"):
    flags = ["-std=gnu17", "-D_GNU_SOURCE"] if language == "c" else ["-std=c++17"]
    if tree.layer(path) != "pool":
        flags += ["-isystem", CUDA]
    if path.parts[:2] == ("src", "sim"):
        flags += ["-D__CUDA_API_VERSION_INTERNAL"]
    compiler = os.environ["BUILD_CC"] if language == "c" else "c++"
    return subprocess.run(
        [*compiler.split(), "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", language, *flags,
         "-I", tree.ROOT / "src", "-I", tree.ROOT / "include", "-I", f"{BUILD}/src", "-"],
        input=f'#include "{tree.ROOT / path}"\n', capture_output=True, text=True)


def undocumented(path):
    """Prototypes with neither a comment right above nor a documented prototype right above."""
    text = tree.text(path)
    lines = text.splitlines()
    documented_ends = set()
    found = []
    for match in PROTOTYPE.finditer(tree.code(path)):
        first = tree.line_of(text, match.start())
        last = tree.line_of(text, match.end() - 1)
        above = lines[first - 2].rstrip() if first > 1 else ""
        if above.endswith("*/") or first - 1 in documented_ends:
            documented_ends.add(last)
        else:
            found.append(f"{path}:{first}: {match.group(2)}")
    return found


class Headers(unittest.TestCase):
    maxDiff = None

    def test_each_compiles_alone(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, done in zip(HEADERS, pool.map(compile_alone, HEADERS)):
                if done.returncode != 0 and NOT_INSTALLED.search(done.stderr):
                    continue
                with self.subTest(str(path)):
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_public_header_is_cplusplus_too(self):
        for path in tree.matching("include", ".h"):
            done = compile_alone(path, "c++")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_open_with_their_purpose(self):
        wrong = [str(path) for path in HEADERS if not tree.text(path).startswith("/* ")]
        self.assertEqual(wrong, [])

    def test_guards(self):
        wrong = [str(path) for path in tree.matching("src", ".h")
                 if "\n#pragma once\n" not in tree.text(path)]
        self.assertEqual(wrong, [])

    def test_prototypes_are_documented(self):
        self.assertEqual([line for path in HEADERS for line in undocumented(path)], [])


if __name__ == "__main__":
    unittest.main()
