#!/usr/bin/env python3
"""usage: fetch.py [--torch]

Fetches NVIDIA's driver libraries from Debian and the CUDA runtimes from PyPI into .driver/. With
--torch also a PyTorch wheel for CUDA 12.6 with all that it needs, into an environment of its own.

Nothing is installed. What is there is not fetched again. What cannot be fetched is told in one
line, which the tests repeat when they skip, and the exit code is 0: a machine without network is no
error.
"""
import os
import pathlib
import shutil
import sys
import tempfile

import libraries

sys.path.insert(0, str(libraries.SOURCE / "packing"))
from download import Apt, Missing, into, need_debian, pinned, pip_into, run, source  # noqa: E402


# ---- Debian's packages ----

def unpack(package, folder):
    """Moves the shared libraries of a package into `folder`, with their links."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        run("dpkg-deb", "-x", package, name)
        found = sorted(pathlib.Path(name).rglob("*.so.*"), key=pathlib.Path.is_symlink)
        for path in found:
            # Files come before links; a link that leads elsewhere belongs to Debian's alternatives.
            if not path.is_symlink() or (folder / os.readlink(path)).exists():
                shutil.move(path, folder / path.name)


def fetch_driver(apt, branch, folder):
    """Gets the packages of a branch into the new folder `folder`."""
    for package in branch.packages:
        versions = [text for text in apt.versions(package) if text.startswith(branch.number + ".")]
        if not versions:
            raise Missing(f"Debian holds no {package} {branch.number}")
        apt.get("download", f"{package}={versions[0]}", cwd=folder)
    for package in list(folder.glob("*.deb")):
        unpack(package, folder)
        package.unlink()
    if not (folder / "libcuda.so.1").exists():
        raise Missing(f"the packages of branch {branch.number} have no libcuda.so.1")


def fetch_drivers(missing):
    """Gets these branches; yields the reasons of what failed."""
    if not missing:
        return
    need_debian()
    suites = sorted({suite for branch in missing for suite in branch.suites})
    with tempfile.TemporaryDirectory(dir=libraries.FOLDER, prefix="apt-") as name:
        apt = Apt(pathlib.Path(name), [source(suite, "non-free") for suite in suites])
        apt.update()
        for branch in missing:
            try:
                into(libraries.driver_folder(branch),
                     lambda folder, branch=branch: fetch_driver(apt, branch, folder))
            except Missing as reason:
                yield str(reason)


# ---- PyPI's packages ----

def fetch_runtime(version, folder):
    """Gets the libraries of a runtime's wheel into the new folder `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        pip_into(name, f"driver-cudart-{version}")
        for path in pathlib.Path(name).rglob("nvidia/*/lib/lib*"):
            shutil.move(path, folder / path.name)


def fetch_runtimes():
    for version in libraries.RUNTIMES:
        if version not in libraries.runtimes():
            into(libraries.runtime_folder(version),
                 lambda folder, version=version: fetch_runtime(version, folder))


def fetch_torch(folder):
    run(sys.executable, "-m", "venv", "--clear", folder)
    run(libraries.TORCH_PYTHON, "-m", "pip", *pinned("driver-torch"), "--no-cache-dir")
    (folder / "complete").touch()


# ---- both ----

def fetch_all(torch):
    """Fetches what is not there; yields the reasons of failures."""
    there = libraries.drivers()
    try:
        yield from fetch_drivers([branch for branch in libraries.BRANCHES if branch not in there])
    except Missing as reason:
        yield str(reason)
    try:
        fetch_runtimes()
        if torch and not libraries.torch_is_there():
            fetch_torch(libraries.TORCH_PYTHON.parents[1])
    except Missing as reason:
        yield str(reason)


def main():
    libraries.FOLDER.mkdir(exist_ok=True)
    reasons = list(dict.fromkeys(fetch_all("--torch" in sys.argv[1:])))
    libraries.REASON.unlink(missing_ok=True)
    if reasons:
        libraries.REASON.write_text("; ".join(reasons) + "\n")
        print(f"not all of NVIDIA's libraries: {'; '.join(reasons)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
