#!/usr/bin/env python3
"""Whatever spillway writes is opened by src/system/create.c, which follows no link of others."""
import re
import unittest

import tree

OPENER = "src/system/create.c"
# They open what exists already: memory of a process by its number, and /dev/null.
EXISTING = {"src/cli/inspect/control.c", "src/cli/verdict/trial.c",
            "src/sim/driver/api/memory/ipc.c", "src/sim/libs/nccl/board.c"}
CALLS = (r"\bopen(?:at)?(?:64)?\s*\([^;{]*\bO_(?:WRONLY|RDWR|APPEND|CREAT|TRUNC|TMPFILE)\b"
         r"|\b(?:creat|mkstemp|mkostemp|freopen|shm_open|tmpfile)\s*\(")
STREAMS = r"\bfopen(?:64)?\s*\([^;]*,(?!\s*\"r[be]*\")"
PYTHON = r"\bopen\([^)]*[\"'][wax]|\.write_(?:text|bytes)\(|\bos\.open\("


def find(pattern, path, content):
    return [f"{path}:{tree.line_of(content, match.start())}: {' '.join(match.group().split())}"
            for match in re.finditer(pattern, content)]


class Outputs(unittest.TestCase):
    def test_object_and_command(self):
        found = []
        for path in tree.matching("src", ".c", ".h"):
            if str(path) != OPENER:
                found += find(STREAMS, path, tree.text(path))
            if str(path) not in EXISTING | {OPENER}:
                found += find(CALLS, path, tree.code(path))
        self.assertEqual(found, [])

    def test_python_package(self):
        """It uses tempfile and os.replace, which follow no link."""
        self.assertEqual([line for path in tree.matching("python", ".py")
                          for line in find(PYTHON, path, tree.text(path))], [])


if __name__ == "__main__":
    unittest.main()
