#!/usr/bin/env python3
"""src/common/torch_keys.def has every key that the wheel's allocator knows, and no others."""
import pathlib
import re
import runpy
import subprocess
import sys
import unittest

import wheel
from running import HERE

ROOT = HERE.parents[1]
# The first PyTorch that knows every key of the table.
COMPLETE = (2, 15)
# The keys of c10/core/AllocatorConfig.h, which has no list: by the function that parses each.
PARSERS = {
    "parseExpandableSegments": "expandable_segments",
    "parseGarbageCollectionThreshold": "garbage_collection_threshold",
    "parseLargeSegmentSize": "large_segment_size_mb",
    "parseMaxNonSplitRoundingSize": "max_non_split_rounding_mb",
    "parseMaxSplitSize": "max_split_size_mb",
    "parsePinnedMaxCachedSize": "pinned_max_cached_size_mb",
    "parsePinnedMaxRoundThreshold": "pinned_max_round_threshold_mb",
    "parsePinnedUseBackgroundThreads": "pinned_use_background_threads",
    "parseRoundUpPower2Divisions": "roundup_power2_divisions",
}


def table():
    text = (ROOT / "src/common/torch_keys.def").read_text()
    return re.findall(r"^SPW_TORCH_KEY\(\s*(\w+),\s*([A-Z]+)", text, re.MULTILINE)


class Settings(unittest.TestCase):
    interpreter = None

    @classmethod
    def setUpClass(cls):
        found = subprocess.run([cls.interpreter, "-c", "import importlib.util; "
                                "print(importlib.util.find_spec('torch').origin)"], text=True,
                               capture_output=True, check=True).stdout.strip()
        cls.torch = pathlib.Path(found).parent

    def header(self, name):
        return (self.torch / "include/c10" / name).read_text()

    def keys_of_wheel(self):
        listed = re.search(r"getKeys\(\) \{(.*?)\};", self.header("cuda/CUDAAllocatorConfig.h"),
                           re.S).group(1)
        listed = re.sub(r"//[^\n]*", "", listed)
        strings = re.findall(r'"\w+"(?:\s*"\w+")*', listed)
        keys = {"".join(re.findall(r'"(\w+)"', string)) for string in strings}
        parsers = re.findall(r"\b(parse\w+)\(\s*const ConfigTokenizer",
                             self.header("core/AllocatorConfig.h"))
        self.assertEqual([name for name in parsers if name not in PARSERS], [],
                         "find the key that it parses, and add both")
        return keys | {PARSERS[name] for name in parsers}

    def test_every_key_has_a_class(self):
        found = self.keys_of_wheel()
        self.assertGreater(len(found), 12)
        self.assertEqual(sorted(found - {key for key, _ in table()}), [])

    def test_keys_of_page_locked_memory(self):
        for key, kind in table():
            with self.subTest(key=key):
                self.assertEqual(kind == "PINNED", key.startswith("pinned_"))

    def test_no_other_key_is_listed(self):
        """Older wheels lack some keys of the table."""
        version = runpy.run_path(self.torch / "version.py")["__version__"]
        if tuple(int(part) for part in version.split(".")[:2]) < COMPLETE:
            self.skipTest(f"torch {version} is older than the table")
        self.assertEqual(sorted({key for key, _ in table()} - self.keys_of_wheel()), [])


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Settings))
