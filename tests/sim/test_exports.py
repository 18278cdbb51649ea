#!/usr/bin/env python3
"""libcuda.so.1 keeps the code that it shares with libspillway.so to itself: with both in a process,
neither may call the other's copy."""
import subprocess
import sys
import unittest

DRIVER = sys.argv.pop(1)


def dynamic_symbols(option):
    listed = subprocess.run(["nm", "--dynamic", "--format=posix", option, DRIVER],
                            capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


class Exports(unittest.TestCase):
    def test_shared_code_is_hidden(self):
        exported = dynamic_symbols("--defined-only")
        self.assertIn("cuMemCreate", exported)
        self.assertEqual([name for name in exported if name.startswith(("spw_", "sim_"))], [])

    def test_shared_code_is_not_taken_from_others(self):
        needed = dynamic_symbols("--undefined-only")
        self.assertEqual([name for name in needed if name.startswith(("spw_", "spillway_"))], [])


if __name__ == "__main__":
    unittest.main()
