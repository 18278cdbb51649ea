#!/usr/bin/env python3
"""The C programs that scripts/bundle takes to a machine with a GPU also build for aarch64, as the
machines GH200 and GB200 are. The driver's functions stay open, and nothing is run."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BUILD_ROOT"])
COMPILER = shutil.which("aarch64-linux-gnu-gcc")
HEADERS = ["/usr/aarch64-linux-gnu/include", "/usr/include/aarch64-linux-gnu"]
# Of Meson's parameters: those that say what the compiler reads, and in which language.
KEPT = re.compile(r"-(I|D|std=|pthread|isystem$)")


def reason():
    """Why this cannot be tested here; "" if it can."""
    if COMPILER is None:
        return "no aarch64-linux-gnu-gcc; scripts/setup --full installs it"
    if not any(os.path.exists(f"{folder}/stdio.h") for folder in HEADERS):
        return "no headers for aarch64; scripts/setup --full installs them"
    return ""


def bundled():
    """The programs' paths in the build folder, as scripts/bundle lists them."""
    text = (ROOT / "scripts/bundle").read_text()
    words = re.search(r"^for name in (.*?); do$", text, re.MULTILINE | re.S).group(1)
    done = subprocess.run(["bash", "-c", "printf '%s\n' " + words], capture_output=True, text=True,
                          check=True)
    return done.stdout.split()


def targets():
    """{path in the build folder: its C sources and their parameters} of all programs."""
    found = {}
    for target in json.loads((BUILD / "meson-info/intro-targets.json").read_text()):
        if target["type"] == "executable":
            path = os.path.relpath(target["filename"][0], BUILD.resolve())
            found[path] = [part for part in target["target_sources"] if part.get("language") == "c"]
    return found


def parameters(part):
    words = part["parameters"]
    return [word for i, word in enumerate(words)
            if KEPT.match(word) or (i > 0 and words[i - 1] == "-isystem")]


def build(parts):
    """What the compiler says of a program; "" if it builds without a warning."""
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            done = subprocess.run(
                [COMPILER, *parameters(part), "-Wall", "-Werror", "-O1", "-o", f"{folder}/program",
                 *part["sources"], *part["generated_sources"],
                 "-Wl,--unresolved-symbols=ignore-all", "-ldl", "-lm"],
                capture_output=True, text=True)
            if done.returncode != 0:
                return done.stderr
    return ""


@unittest.skipIf(reason(), reason())
class Aarch64(unittest.TestCase):
    def test_programs_of_the_bundle(self):
        known = targets()
        names = [name for name in bundled() if name in known]
        self.assertIn("tests/gpu/probe", names)
        self.assertGreater(len(names), 10)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, said in zip(names, pool.map(lambda name: build(known[name]), names)):
                with self.subTest(name):
                    self.assertEqual(said, "")


def main():
    if reason():
        print(reason())
        raise SystemExit(77)
    unittest.main()


if __name__ == "__main__":
    main()
