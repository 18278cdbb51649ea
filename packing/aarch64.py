#!/usr/bin/env python3
"""usage: aarch64.py [--fetch [torch] | --build [OPTION...]]

What building for aarch64, and running there, needs beside a compiler and qemu, in .aarch64/:
`build`, the headers and libraries of Debian 11, against whose glibc everything is built; and `run`,
Debian 12 with an interpreter, in which emulate.sh runs programs. With torch, also `torch`, the
PyTorch of tests/torch/requirements.txt for that interpreter.

Without an argument: says whether both are there; the exit code is 77 with the reason if they are
not. With --fetch: gets what is missing. With --build: builds everything into build-aarch64/; the
options go to Meson.
"""
import functools
import os
import pathlib
import shutil
import subprocess
import sys

import download
import sysroot

FOLDER = sysroot.SOURCE / ".aarch64"
ROOT = FOLDER / "build"
BUILD = sysroot.SOURCE / "build-aarch64"
TOOLS = "aarch64-linux-gnu-"  # begins the names of the compiler and of binutils
TORCH = FOLDER / "torch"
CONSTANTS = FOLDER / "source.ini"
CROSS = sysroot.SOURCE / "packing/aarch64.ini"
# By the folder, what is fetched into it, and what its packages are.
ROOTS = {
    ROOT: {"packages": ("libc6-dev", "libunwind-dev", "libcjson-dev", "libcmocka-dev"),
           "suites": ("bullseye",)},  # mirrors lack its security suite for this architecture
    FOLDER / "run": {
        "packages": ("bash", "binutils", "coreutils", "dash", "diffutils", "findutils", "gawk",
                     "grep", "libcjson1", "libcmocka0", "liblz4-1", "libstdc++6", "libunwind8",
                     "libzstd1", "mount", "procps", "python3", "python3-jsonschema", "sed",
                     "util-linux"),
        "suites": ("bookworm", "bookworm-security")},
}


def missing():
    """What running the tests needs, and this machine does not have."""
    return [name for name in (f"{TOOLS}gcc", f"{TOOLS}g++", "qemu-aarch64-static")
            if shutil.which(name) is None] + [
                str(root.relative_to(FOLDER.parent)) for root in ROOTS if not root.is_dir()]


def is_there():
    return not missing()


def fetch_torch(folder):
    download.pip_into(folder, "torch", "--python-version", "3.11", "--implementation", "cp",
                      *(f"--platform=manylinux_2_{minor}_aarch64" for minor in range(28, 16, -1)),
                      "--platform=manylinux2014_aarch64")


def why_not():
    """A line that tells why it is not there."""
    return f"scripts/setup --aarch64 has not installed {' '.join(missing())}"


def fetch(torch):
    FOLDER.mkdir(exist_ok=True)
    for root, content in ROOTS.items():
        if not root.is_dir():
            print(f"fetching Debian for aarch64 into {root.relative_to(FOLDER.parent)}/")
            download.into(root, functools.partial(sysroot.fetch_root, headers=(),
                                                  architecture="arm64", **content))
    if torch and not TORCH.is_dir():
        print(f"fetching PyTorch for aarch64 into {TORCH.relative_to(FOLDER.parent)}/")
        download.into(TORCH, fetch_torch)


def build(options):
    """Builds what has changed. The tests are run by Debian's interpreter, which is at the same
    place in `run`."""
    environment = os.environ | {"PATH": "/usr/lib/ccache:/usr/bin:" + os.environ["PATH"]}
    if not (BUILD / "build.ninja").exists():
        CONSTANTS.write_text(f"[constants]\nsource = '{sysroot.SOURCE}'\n")
        subprocess.run(["meson", "setup", BUILD, "--cross-file", CONSTANTS, "--cross-file", CROSS,
                        *options],
                       cwd=sysroot.SOURCE, env=environment, stdout=subprocess.DEVNULL, check=True)
    elif options:
        subprocess.run(["meson", "configure", BUILD, *options], env=environment, check=True)
    subprocess.run(["ninja", "-C", BUILD, "--quiet"], env=environment, check=True)


def main():
    if sys.argv[1:] in (["--fetch"], ["--fetch", "torch"]):
        try:
            fetch("torch" in sys.argv)
        except download.Missing as reason:
            print(f"no packages for aarch64: {reason}", file=sys.stderr)
            return 1
        return 0
    if sys.argv[1:2] == ["--build"]:
        build(sys.argv[2:])
        return 0
    if sys.argv[1:]:
        print(__doc__.partition("\n")[0], file=sys.stderr)
        return 2
    print(FOLDER if is_there() else why_not())
    return 0 if is_there() else 77


if __name__ == "__main__":
    sys.exit(main())
