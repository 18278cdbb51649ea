#!/usr/bin/env python3
"""The source distribution: the same tree gives the same archive; the wheel that is built from it
has the bytes of the one that is built from the tree; and pip installs it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "packing"))
import backend  # noqa: E402
import sysroot  # noqa: E402


def run(*command, **variables):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, **variables})
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


class Source(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.archive = cls.folder / backend.build_sdist(cls.folder)
        with tarfile.open(cls.archive) as archive:
            archive.extractall(cls.folder)
        cls.tree = cls.folder / cls.archive.name.removesuffix(".tar.gz")

    def test_same_tree_same_archive(self):
        with tempfile.TemporaryDirectory() as folder:
            again = pathlib.Path(folder, backend.build_sdist(folder))
            self.assertEqual(again.read_bytes(), self.archive.read_bytes())

    def test_holds_the_tree(self):
        for path in backend.tracked():
            copy = self.tree / path
            self.assertEqual(os.access(copy, os.X_OK), os.access(SOURCE / path, os.X_OK), path)
            self.assertEqual(copy.read_bytes(), (SOURCE / path).read_bytes(), path)
        run(sys.executable, "-m", "twine", "check", "--strict", self.archive,
            PYTHONPATH=str(sysroot.TOOLS))

    def test_wheel_from_it_has_the_same_bytes(self):
        wheels = []
        for tree in SOURCE, self.tree:
            for name in (".wheel", ".cuda", ".cuda12"):
                if (SOURCE / name).exists() and not (tree / name).exists():
                    (tree / name).symlink_to(SOURCE / name)
            with tempfile.TemporaryDirectory() as folder:
                wheel = run(sys.executable, tree / "packing/make_wheel.py", folder).strip()
                wheels.append(pathlib.Path(wheel).read_bytes())
        self.assertTrue(wheels[0] == wheels[1], "the wheels differ")

    def test_pip_installs_it(self):
        run(sys.executable, "-m", "venv", self.folder / "env")
        run(self.folder / "env/bin/python", "-m", "pip", "install", "--no-index",
            "--no-build-isolation", "--disable-pip-version-check", self.archive,
            PYTHONPATH=str(sysroot.TOOLS))
        done = subprocess.run([self.folder / "env/bin/spillway", "sim", "--", "true"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("verdict:", done.stderr)


if __name__ == "__main__":
    if not sysroot.is_there() or not shutil.which("patchelf"):
        print(f"skipped: {sysroot.why_not()}")
        sys.exit(77)
    unittest.main(verbosity=2)
