#!/usr/bin/env python3
"""C and C++ files are formatted as .clang-format says."""
import re
import shutil
import subprocess
import unittest

import tree

# Versions format differently; this one is Debian 12's.
VERSION = 14
FILES = [path for path in tree.matching("src include tests", ".c", ".h", ".cpp")
         if path.parts[:3] != ("tests", "sim", "fatbins")]


def version():
    """The major version of clang-format, 0 without one."""
    if shutil.which("clang-format") is None:
        return 0
    text = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\d+)", text)
    return int(found.group(1)) if found else 0


class Format(unittest.TestCase):
    @unittest.skipUnless(version() == VERSION,
                         f"clang-format {VERSION} is needed (scripts/setup --style)")
    def test_files_are_formatted(self):
        self.assertGreater(len(FILES), 400)
        done = subprocess.run(["clang-format", "--dry-run", "--ferror-limit=1", *map(str, FILES)],
                              cwd=tree.ROOT, capture_output=True, text=True)
        wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning", done.stderr, re.MULTILINE)))
        self.assertEqual(wrong, [], "run clang-format -i on these files")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
