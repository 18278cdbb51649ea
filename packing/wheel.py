#!/usr/bin/env python3
"""usage: wheel.py FOLDER

Builds spillway against the glibc of Debian 11 in build-wheel/, and writes a wheel of it into
FOLDER, which serves every CPython 3. Needs what `sysroot.py --fetch` gets. Prints the wheel's path.

The wheel holds the package of python/spillway/ and, in its folder native/, what contents.py packs;
beside them the manual page and the completions.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import contents
import sysroot

SOURCE = sysroot.SOURCE
BUILD = SOURCE / "build-wheel"
PYTHON = SOURCE / "python"
TAG = f"py3-none-manylinux_{sysroot.GLIBC.replace('.', '_')}_x86_64"
# For Meson: this machine's compiler, with the headers and libraries of Debian 11. Without -B, gcc
# looks beside itself first, where this machine's own are.
MACHINE = f"""[constants]
root = '{sysroot.ROOT}'
libraries = root + '/usr/lib/x86_64-linux-gnu'

[properties]
sys_root = root
pkg_config_libdir = libraries + '/pkgconfig'

[built-in options]
c_args = ['--sysroot=' + root]
c_link_args = ['--sysroot=' + root, '-B' + libraries]
"""
METADATA = """Metadata-Version: 2.1
Name: spillway
Version: {version}
Summary: Takes over the GPU memory of unmodified CUDA programs
License: MIT
Platform: Linux
Requires-Python: >=3.8
Description-Content-Type: text/markdown

"""
WHEEL = f"""Wheel-Version: 1.0
Generator: spillway
Root-Is-Purelib: false
Tag: {TAG}
"""
ENTRY_POINTS = """[console_scripts]
spillway = spillway.__main__:main

[pytest11]
spillway.pytest = spillway.pytest
"""
# Goes below the environment's prefix: file or folder of docs/, and folder.
DATA = {"spillway.1": "share/man/man1",
        "completions/spillway": "share/bash-completion/completions",
        "completions/_spillway": "share/zsh/site-functions",
        "completions/spillway.fish": "share/fish/vendor_completions.d"}


def run(*command, **settings):
    """The output of a command; its whole output is the reason if it fails."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LIBRARY_PATH")}
    environment.update(settings)
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=environment)
    if done.returncode != 0:
        raise contents.Broken(f"{command[0]} failed:\n{done.stdout}")
    return done.stdout


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def build():
    """Builds what has changed."""
    if not (SOURCE / ".cuda12/include/cuda.h").exists():
        raise contents.Broken("no headers of CUDA 12 in .cuda12/: scripts/setup gets them")
    machine = BUILD / "machine.ini"
    known = machine.exists() and machine.read_text() == MACHINE
    if not known or not (BUILD / "build.ninja").exists():
        shutil.rmtree(BUILD, ignore_errors=True)
        write(machine, MACHINE)
        run("meson", "setup", BUILD, SOURCE, "--native-file", machine, "-Dtests=false",
            "-Dbench=false")
    run("ninja", "-C", BUILD, "--quiet")


def fill(tree, version):
    """Writes what the wheel holds into the folder `tree`."""
    package, info = tree / "spillway", tree / f"spillway-{version}.dist-info"
    data = tree / f"spillway-{version}.data/data"
    shutil.copytree(PYTHON / "spillway", package,
                    ignore=shutil.ignore_patterns("__pycache__", "_recompute.py"))
    contents.pack(BUILD, package / "native", sysroot.ROOT)
    contents.check(tree, sysroot.GLIBC)
    for name, folder in DATA.items():
        (data / folder).mkdir(parents=True)
        shutil.copy(SOURCE / "docs" / name, data / folder)
    write(info / "METADATA",
          METADATA.format(version=version) + (SOURCE / "README.md").read_text())
    write(info / "WHEEL", WHEEL)
    write(info / "entry_points.txt", ENTRY_POINTS)
    shutil.copy(SOURCE / "LICENSE", info)


def make(folder):
    """Builds, and returns the wheel's path."""
    build()
    version = json.loads(run("meson", "introspect", BUILD, "--projectinfo"))["version"]
    with tempfile.TemporaryDirectory() as name:
        tree = pathlib.Path(name, "tree")
        fill(tree, version)
        # The zip format knows no time before 1980; the same tree gives the same wheel.
        run(sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", folder,
            PYTHONPATH=str(sysroot.TOOLS), SOURCE_DATE_EPOCH="315532800")
    return folder / f"spillway-{version}-{TAG}.whl"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.partition("\n")[0], file=sys.stderr)
        return 2
    if not sysroot.is_there():
        print(f"wheel.py: {sysroot.why_not()}", file=sys.stderr)
        return 77
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        print(make(folder))
    except contents.Broken as reason:
        print(f"wheel.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
