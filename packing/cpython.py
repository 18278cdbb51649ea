#!/usr/bin/env python3
"""usage: cpython.py VERSION FOLDER

Fetches CPython VERSION, such as 3.14, from Debian's unstable suite into the new folder FOLDER, for
machines whose own distribution has none. The C library and the others that it needs come along.
Nothing is installed. The interpreter, FOLDER/bin/pythonVERSION, names the folder, which cannot be
moved. It has no ensurepip.

What cannot be fetched is told in one line on stderr, with the exit code 1.
"""
import pathlib
import shutil
import sys
import tempfile

from download import Apt, Missing, into, need_debian, run, source

LOADER = "ld-linux-x86-64.so.2"
# Parts of the C library that the interpreter does not name, but libraries that it loads later do:
# these would get the machine's own, which belong to another version of the C library.
C_LIBRARY = ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")


def link(interpreter, libraries):
    """Makes an interpreter use these libraries. patchelf 0.14 makes one change a call right."""
    for name in C_LIBRARY:
        run("patchelf", "--add-needed", name, interpreter)
    run("patchelf", "--force-rpath", "--set-rpath", libraries, interpreter)
    run("patchelf", "--set-interpreter", libraries / LOADER, interpreter)


def fill(folder, target, version):
    """Fetches everything into `folder`, which becomes `target`."""
    name = f"python{version}"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "apt").mkdir()
        apt = Apt(scratch / "apt", [source("sid", "main")])
        apt.update()
        for package in apt.download_with_needs(name):
            run("dpkg-deb", "-x", package, scratch / "root")
        (folder / "bin").mkdir()
        (folder / "lib/needed").mkdir(parents=True)
        shutil.copy(scratch / f"root/usr/bin/{name}", folder / "bin")
        shutil.move(scratch / f"root/usr/lib/{name}", folder / "lib")
        for library in (scratch / "root/usr/lib/x86_64-linux-gnu").glob("*.so*"):
            shutil.copy(library, folder / "lib/needed")
    link(folder / "bin" / name, target / "lib/needed")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.partition("\n")[0])
    version, target = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
    try:
        need_debian()
        into(target, lambda folder: fill(folder, target, version))
        run(target / f"bin/python{version}", "-c", "import ctypes, lzma, sqlite3, ssl")
    except Missing as reason:
        sys.exit(f"no CPython {version}: {reason}")


if __name__ == "__main__":
    main()
