#!/usr/bin/env python3
"""usage: sysroot.py [--fetch]

Debian 11 in the folder .wheel/root, against whose glibc the wheel is built and in which it is
tried: the headers and libraries that building needs, and an interpreter. Beside it, in
.wheel/tools, the Python programs that pack and judge a wheel, and in .wheel/jupyter-3.N what runs a
notebook with this Python.

Without --fetch: says whether it is there; the exit code is 77 with the reason if it is not. With
--fetch: gets what is missing. That it cannot be had is no error; the reason is kept, and the tests
repeat it when they skip.
"""
import os
import pathlib
import shutil
import sys
import tempfile

import download

SOURCE = pathlib.Path(__file__).resolve().parents[1]
FOLDER = SOURCE / ".wheel"
ROOT = FOLDER / "root"
TOOLS = FOLDER / "tools"
JUPYTER = FOLDER / f"jupyter-{sys.version_info.major}.{sys.version_info.minor}"
REASON = FOLDER / "reason"  # why not all of it is there
LIST = "requirements.txt"   # what was fetched into a folder of packages
GLIBC = "2.31"              # that of Debian 11

SUITES = ("bullseye", "bullseye-security")
PACKAGES = ("libc6-dev", "libunwind-dev", "libcjson1", "python3-venv")
# From the first suite: headers do not change with security updates, whose files mirrors may lack.
HEADERS = ("libcjson-dev",)
# Where the suites go when they leave the mirrors.
RETIRED = {"bullseye": "http://archive.debian.org/debian",
           "bullseye-security": "http://archive.debian.org/debian-security"}
ENVIRONMENTS = {TOOLS: "wheel-tools", JUPYTER: "wheel-jupyter"}  # of scripts/pins


def pins(name):
    return (download.PINS / f"{name}.txt").read_text()


def has(folder, name):
    """Whether the folder holds the packages of an environment, as its list says."""
    listed = folder / LIST
    return listed.exists() and listed.read_text() == pins(name)


def is_there():
    return ROOT.is_dir() and all(has(folder, name) for folder, name in ENVIRONMENTS.items())


def why_not():
    """A line that tells why it is not there."""
    if REASON.exists():
        return REASON.read_text().strip()
    return "scripts/setup --wheel has not fetched Debian 11"


def download_packages(folder, packages, headers, suites, architecture):
    """The files of the packages, from the mirrors or from where retired suites are kept."""
    reasons = []
    for number, addresses in enumerate(({}, RETIRED)):
        apt = download.Apt(folder / str(number), [
            download.source(suite, "main", addresses.get(suite)) for suite in suites], architecture)
        if addresses:
            apt.options.append("-oAcquire::Check-Valid-Until=false")
        try:
            apt.update()
            if headers:
                apt.get("download", *(f"{name}/{suites[0]}" for name in headers), cwd=apt.archives)
            return apt.download_with_needs(*packages)
        except download.Missing as reason:
            reasons.append(str(reason))
    raise download.Missing(reasons[0])


def keep_links_inside(root):
    """Makes absolute links relative: outside a changed root they would lead to this machine's own
    libraries."""
    for folder, folders, files in os.walk(root):
        for path in (pathlib.Path(folder, name) for name in folders + files):
            if path.is_symlink() and os.readlink(path).startswith("/"):
                target = root / os.readlink(path).lstrip("/")
                path.unlink()
                path.symlink_to(os.path.relpath(target, path.parent))


def fetch_root(root, packages=PACKAGES, headers=HEADERS, suites=SUITES, architecture="amd64"):
    """Unpacks packages, and all that they depend on, in a folder. Of `headers` nothing more is
    fetched."""
    download.need_debian()
    with tempfile.TemporaryDirectory(dir=root.parent, prefix="apt-") as name:
        for package in download_packages(pathlib.Path(name), packages, headers, suites,
                                         architecture):
            download.run("dpkg-deb", "-x", package, root)
    keep_links_inside(root)
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir(exist_ok=True)


def fetch_packages(folder, name):
    download.pip_into(folder, name)
    (folder / LIST).write_text(pins(name))


def fetch_all():
    FOLDER.mkdir(exist_ok=True)
    if not is_there():
        print("fetching Debian 11, and what tries a wheel, into .wheel/")
    if not ROOT.is_dir():
        download.into(ROOT, fetch_root)
    for target, name in ENVIRONMENTS.items():
        if not has(target, name):
            download.into(target, lambda folder, name=name: fetch_packages(folder, name))


def main():
    if sys.argv[1:] == ["--fetch"]:
        try:
            fetch_all()
            REASON.unlink(missing_ok=True)
        except download.Missing as reason:
            REASON.write_text(f"{reason}\n")
            print(f"no Debian 11 to build a wheel for: {reason}", file=sys.stderr)
        return 0
    if sys.argv[1:]:
        print(__doc__.partition("\n")[0], file=sys.stderr)
        return 2
    print(ROOT if is_there() else why_not())
    return 0 if is_there() else 77


if __name__ == "__main__":
    sys.exit(main())
