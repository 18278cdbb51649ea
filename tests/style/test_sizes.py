#!/usr/bin/env python3
"""Folders, files, functions and lines stay small; no stray white space."""
import collections
import json
import re
import shutil
import subprocess
import unittest

import tree

# Sources and headers in one folder of src/.
FOLDER_FILES = 40
FILE_LINES = 800
FUNCTION_LINES = 80
LONG_FUNCTION_LINES = 60
LONG_SHARE = 0.05
COLUMNS = 100

TEXT = [path for path in tree.files() if path.suffix not in (".csv", ".png", ".xz")]
CODE = tree.matching("src include tests", ".c", ".h", ".def", ".py", ".cu", ".cpp")


def functions():
    """(lines, where, name) of every C function of src/, and of the tests."""
    paths = [str(path) for path in CODE if path.suffix in (".c", ".h")]
    done = subprocess.run(["ctags", "--output-format=json", "--fields=+ne", "--kinds-C=f", "-o",
                           "-", "-L", "-"], input="\n".join(paths), cwd=tree.ROOT,
                          capture_output=True, text=True, check=True)
    found = []
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        if "end" in tag:
            found.append((tag["end"] - tag["line"] + 1, f"{tag['path']}:{tag['line']}",
                          tag["name"]))
    return found


def wide(path):
    """Prose with tables, data, and the generated manual page may have longer lines."""
    return path.suffix in (".md", ".1") or path.parts[0] == "docs" or \
        not {"results", "data", "pins"}.isdisjoint(path.parts) or path.name == "equivalents.json"


class Sizes(unittest.TestCase):
    maxDiff = None

    def test_folders(self):
        counts = collections.Counter(path.parent for path in tree.matching("src", ".c", ".h"))
        self.assertLessEqual(max(counts.values()), FOLDER_FILES, counts.most_common(3))

    def test_files(self):
        self.assertEqual([f"{path}: {tree.text(path).count(chr(10))} lines" for path in CODE
                          if tree.text(path).count("\n") > FILE_LINES], [])

    @unittest.skipUnless(shutil.which("ctags"), "no ctags")
    def test_functions(self):
        found = functions()
        self.assertGreater(len(found), 100)
        self.assertEqual([entry for entry in found if entry[0] > FUNCTION_LINES], [])
        sources = [entry for entry in found if entry[1].startswith("src/")]
        long = [entry for entry in sources if entry[0] > LONG_FUNCTION_LINES]
        self.assertLessEqual(len(long), LONG_SHARE * len(sources), long)

    def test_lines(self):
        wrong = []
        for path in TEXT:
            for number, line in enumerate(tree.text(path).splitlines(), 1):
                if len(line) > COLUMNS and not wide(path):
                    wrong.append(f"{path}:{number}: {len(line)} columns")
                if line != line.rstrip() or ("\t" in line and path.suffix not in (".mk",)):
                    wrong.append(f"{path}:{number}: a trailing space or a tab")
                if re.search("[\u200b-\u200f\u202a-\u202e\u2060\ufeff\xa0]", line):
                    wrong.append(f"{path}:{number}: an invisible character")
            if tree.text(path) and not tree.text(path).endswith("\n"):
                wrong.append(f"{path}: no newline at the end")
        self.assertEqual(wrong, [])

    def test_scripts_parse(self):
        for path in tree.files():
            if tree.text(path).startswith("#!/usr/bin/env bash"):
                done = subprocess.run(["bash", "-n", tree.ROOT / path], capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
