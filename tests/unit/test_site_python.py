#!/usr/bin/env python3
"""Python call sites on every CPython of this machine.

    test_site_python.py LIBRARY

Exits with 77 where the library has a sanitizer in it.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = pathlib.Path(sys.argv[1]).resolve()
READ = [f"3.{minor}" for minor in range(8, 15)]
VERSION = ("import sys, platform, sysconfig; print(platform.python_implementation(), "
           "'%d.%d.%d' % sys.version_info[:3], bool(sysconfig.get_config_var('Py_GIL_DISABLED')))")


UNREAD = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.probe_start(3)
text, addresses = ctypes.create_string_buffer(1 << 16), (ctypes.c_uint64 * 64)()
for _ in range(2):
    site = library.probe_capture()
    sys.stdout.write("%s %d " % (library.probe_native(site, addresses) > 0,
                                 library.probe_python(site, text, len(text))))
"""


def candidates():
    yield sys.executable
    yield "/usr/bin/python3"
    for version in READ:
        found = shutil.which(f"python{version}")
        if found:
            yield found
    # What scripts/setup --torch-newest has fetched.
    fetched = (HERE.parents[1] / ".venv-newest").glob("cpython-3.*/bin/python3.*")
    yield from map(str, sorted(fetched))
    homes = [os.environ.get("PYENV_ROOT"), "~/.pyenv", "~/.local/share/uv/python"]
    for home in filter(None, homes):
        folder = pathlib.Path(home).expanduser()
        yield from map(str, sorted(folder.glob("versions/3.*/bin/python3")))
        yield from map(str, sorted(folder.glob("cpython-3*/bin/python3")))


def interpreters(readable=True):
    """{version: path} of the CPython interpreters that sites can be read of, or of the others."""
    found = {}
    for path in candidates():
        done = subprocess.run([path, "-c", VERSION], capture_output=True, text=True, timeout=60)
        words = done.stdout.split()
        if done.returncode != 0 or words[0] != "CPython":
            continue
        known = words[2] != "True" and ".".join(words[1].split(".")[:2]) in READ
        if known == readable:
            found.setdefault(words[1], path)
    return found


class Python(unittest.TestCase):
    def test_every_interpreter(self):
        versions = interpreters()
        self.assertTrue(versions)
        for version, path in sorted(versions.items()):
            with self.subTest(version):
                done = subprocess.run([path, str(HERE / "site_python.py"), str(LIBRARY)],
                                      capture_output=True, text=True, timeout=300,
                                      env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
                self.assertEqual(done.returncode, 0, done.stderr[-3000:])
                self.assertEqual(done.stderr, "")
                self.assertTrue(re.fullmatch(r"[0-9]+\n", done.stdout), done.stdout)
                print(f"CPython {version}: {done.stdout.strip()} stacks as the interpreter says")
                self.assertGreater(int(done.stdout), 1000)


    def test_other_interpreters(self):
        """One line, and native frames only; there may be none to try it with."""
        for version, path in sorted(interpreters(readable=False).items()):
            with self.subTest(version):
                done = subprocess.run([path, "-c", UNREAD, str(LIBRARY)], capture_output=True,
                                      text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (0, "True 0 True 0 "))
                lines = done.stderr.splitlines()
                self.assertEqual(len(lines), 1, lines)
                self.assertRegex(lines[0], rf"^spillway: call sites: Python {version} .* cannot be "
                                           r"read \(.*\); sites are native frames only$")


if __name__ == "__main__":
    if os.environ.get("BUILD_SANITIZED", "none") != "none":
        print("an object with a sanitizer cannot be loaded into an interpreter without")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
