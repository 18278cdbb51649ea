#!/usr/bin/env python3
"""External functions begin with the name of their folder, so that a call says which layer answers.

    test_names.py --list    prints the functions that do not
"""
import json
import re
import shutil
import subprocess
import sys
import unittest

import tree

SHARE = 0.95
# The bottom layer's functions are named by their module alone.
PREFIXES = {"common": ("spw_",), "system": ("spw_",), "sim": ("sim", "shim_")}
# Names that programs call: NVIDIA's, libc's, and the public interface.
EXPORTED = re.compile(r"(cu[A-Z]|cuda|cublas|cudnn|cufft|cusolver|cusparse|nccl|nvml|gdr_|ibv_|"
                      r"__cuda|dlsym$|dlvsym$|main$|spillway_|spw_serve_cu)")


def functions():
    """(path, name) of every function of src/ with external linkage."""
    paths = [str(path) for path in tree.matching("src", ".c")]
    done = subprocess.run(["ctags", "--output-format=json", "--fields=+nf", "--extras=+F",
                           "--kinds-C=f", "-o", "-", "-L", "-"], input="\n".join(paths),
                          cwd=tree.ROOT, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        if not tag.get("file") and not EXPORTED.match(tag["name"]) and tag["name"].islower():
            yield tree.pathlib.PurePath(tag["path"]), tag["name"]


def agrees(path, name):
    layer = tree.layer(path)
    return name.startswith(PREFIXES.get(layer, (f"spw_{layer}_",)))


@unittest.skipUnless(shutil.which("ctags"), "no ctags")
class Names(unittest.TestCase):
    def test_prefix_is_the_folder(self):
        found = list(functions())
        self.assertGreater(len(found), 500)
        preloaded = [entry for entry in found if tree.layer(entry[0]) != "sim"]
        for entries in (found, preloaded):
            wrong = [f"{path}: {name}" for path, name in entries if not agrees(path, name)]
            self.assertLessEqual(len(wrong), (1 - SHARE) * len(entries), wrong)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        every = list(functions())
        wrong = [entry for entry in every if not agrees(*entry)]
        print("\n".join(f"{path}: {name}" for path, name in wrong))
        print(f"{len(every) - len(wrong)} of {len(every)} agree")
    else:
        unittest.main()
