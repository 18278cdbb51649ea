#!/usr/bin/env python3
"""usage: make_wheel.py FOLDER [aarch64]

Builds spillway against the glibc of Debian 11 in build-wheel/, and writes a wheel of it into
FOLDER, which serves every CPython 3. Needs what `sysroot.py --fetch` gets. Prints the wheel's path.
With aarch64, the wheel is for that processor, from build-aarch64/ (aarch64.py).

The wheel holds the package of python/spillway/ and, in its folder native/, what contents.py packs;
beside them the manual page and the completions.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import aarch64
import contents
import headers
import sysroot

SOURCE = sysroot.SOURCE
BUILD = SOURCE / "build-wheel"
PYTHON = SOURCE / "python"
TAG = f"py3-none-manylinux_{sysroot.GLIBC.replace('.', '_')}_"  # and the processor
TAG_HERE = "py3-none-linux_x86_64"  # for no other machine
# NVIDIA's headers, so that a wheel does not depend on the toolkit of the machine.
HEADERS = {"13": ".cuda", "12": ".cuda12"}
# For Meson: this machine's compiler, with the headers and libraries of Debian 11. Without -B, gcc
# looks beside itself first, where this machine's own are.
MACHINE = f"""[constants]
root = '{sysroot.ROOT}'
libraries = root + '/usr/lib/x86_64-linux-gnu'

[properties]
sys_root = root
pkg_config_libdir = libraries + '/pkgconfig'

[project options]
cuda-headers = '{HEADERS["13"]}/include'

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
WHEEL = """Wheel-Version: 1.0
Generator: spillway
Root-Is-Purelib: false
Tag: {tag}
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


def get_headers():
    for major, folder in HEADERS.items():
        try:
            headers.get(major, SOURCE / folder)
        except headers.PROBLEMS as reason:
            raise contents.Broken(f"no headers of CUDA {major}: {reason}") from reason


def build():
    """Builds what has changed."""
    machine = BUILD / "machine.ini"
    known = machine.exists() and machine.read_text() == MACHINE
    if not known or not (BUILD / "build.ninja").exists():
        shutil.rmtree(BUILD, ignore_errors=True)
        write(machine, MACHINE)
        run("meson", "setup", BUILD, SOURCE, "--native-file", machine, "-Dtests=false",
            "-Dbench=false")
    run("ninja", "-C", BUILD, "--quiet")


def version():
    """The project's, from its first lines in meson.build."""
    return re.search(r"\bversion: '([0-9.]+)'", (SOURCE / "meson.build").read_text()).group(1)


def metadata(number):
    return METADATA.format(version=number) + (SOURCE / "README.md").read_text()


def fill(tree, number, build, root, tag, tools):
    """Writes what the wheel holds into the folder `tree`. The libraries are those below `root`;
    with None the machine has them."""
    package, info = tree / "spillway", tree / f"spillway-{number}.dist-info"
    data = tree / f"spillway-{number}.data/data"
    shutil.copytree(PYTHON / "spillway", package,
                    ignore=shutil.ignore_patterns("__pycache__", "_recompute.py"))
    contents.pack(build, package / "native", root, tools)
    for name, folder in DATA.items():
        (data / folder).mkdir(parents=True)
        shutil.copy(SOURCE / "docs" / name, data / folder)
    write(info / "METADATA", metadata(number))
    write(info / "WHEEL", WHEEL.format(tag=tag))
    write(info / "entry_points.txt", ENTRY_POINTS)
    shutil.copy(SOURCE / "LICENSE", info)


def pack(folder, build, root, tag, tools=""):
    """Makes the wheel of a build in a folder. Returns its path. See contents.py for `root` and
    `tools`."""
    number = version()
    with tempfile.TemporaryDirectory() as name:
        tree = pathlib.Path(name, "tree")
        fill(tree, number, build, root, tag, tools)
        if root is not None:
            contents.check(tree, sysroot.GLIBC, tools)
        # The zip format knows no time before 1980; the same tree gives the same wheel.
        run(sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", folder,
            PYTHONPATH=os.pathsep.join([str(sysroot.TOOLS), os.environ.get("PYTHONPATH", "")]),
            SOURCE_DATE_EPOCH="315532800")
    return folder / f"spillway-{number}-{tag}.whl"


def make(folder):
    """Builds for Debian 11, and returns the wheel's path."""
    get_headers()
    build()
    return pack(folder, BUILD, sysroot.ROOT, TAG + "x86_64")


def make_aarch64(folder):
    """Builds for Debian 11 on aarch64, and returns the wheel's path."""
    get_headers()
    aarch64.build([])
    return pack(folder, aarch64.BUILD, aarch64.ROOT, TAG + "aarch64", aarch64.TOOLS)


def make_here(folder):
    """Builds for this machine, and returns the wheel's path."""
    get_headers()
    with tempfile.TemporaryDirectory() as name:
        run("meson", "setup", name, SOURCE, "-Dtests=false", "-Dbench=false",
            f"-Dcuda-headers={HEADERS['13']}/include")
        run("ninja", "-C", name, "--quiet")
        return pack(folder, pathlib.Path(name), None, TAG_HERE)


def main():
    if sys.argv[2:] not in ([], ["aarch64"]) or not sys.argv[1:] or sys.argv[1].startswith("-"):
        print(__doc__.partition("\n")[0], file=sys.stderr)
        return 2
    for_aarch64 = sys.argv[2:] == ["aarch64"]
    for module in (sysroot, aarch64) if for_aarch64 else (sysroot,):
        if not module.is_there():
            print(f"make_wheel.py: {module.why_not()}", file=sys.stderr)
            return 77
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        print(make_aarch64(folder) if for_aarch64 else make(folder))
    except contents.Broken as reason:
        print(f"make_wheel.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
