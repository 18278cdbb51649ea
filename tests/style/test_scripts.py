#!/usr/bin/env python3
"""Scripts explain themselves and do nothing else when asked to."""
import subprocess
import tempfile
import unittest

import tree

SCRIPTS = [path for path in tree.files() if path.parts[0] == "scripts"]
WITHOUT_ARGUMENTS = ("bundle", "demo", "docs", "house", "pins", "setup", "test", "wheel")


def run(path, *arguments):
    """Runs a copy in an empty tree, where any work would fail or leave files."""
    with tempfile.TemporaryDirectory() as folder:
        copy = 'mkdir scripts && cp "$0" scripts/ && exec scripts/"$@"'
        done = subprocess.run(["bash", "-c", copy, tree.ROOT / path, path.name, *arguments],
                              cwd=folder, timeout=60, capture_output=True, text=True)
        left = subprocess.run(["find", ".", "-type", "f", "-not", "-path", "./scripts/*"],
                              cwd=folder, capture_output=True, text=True, check=True).stdout
    return done, left


class Scripts(unittest.TestCase):
    def test_help_prints_the_usage_and_does_nothing(self):
        self.assertGreater(len(SCRIPTS), 6)
        for path in SCRIPTS:
            for flag in ("--help", "-h"):
                with self.subTest(f"{path} {flag}"):
                    done, left = run(path, flag)
                    self.assertEqual((done.returncode, done.stderr, left), (0, "", ""))
                    self.assertTrue(done.stdout.startswith(f"usage: {path}"), done.stdout)
                    self.assertGreater(done.stdout.count("\n"), 2)

    def test_unknown_arguments_are_bad_usage(self):
        for name in WITHOUT_ARGUMENTS:
            path = next(path for path in SCRIPTS if path.name == name)
            with self.subTest(str(path)):
                done, left = run(path, "--no-such-option")
                self.assertEqual((done.returncode, done.stdout, left), (2, "", ""))
                self.assertTrue(done.stderr.startswith(f"usage: {path}"), done.stderr)


if __name__ == "__main__":
    unittest.main()
