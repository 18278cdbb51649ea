#!/usr/bin/env python3
"""usage: fetch.py [--torch]

Fetches NVIDIA's driver libraries from Debian and the CUDA runtimes from PyPI into .driver/. With
--torch also a PyTorch wheel for CUDA 12.6 with all that it needs, into an environment of its own.

Nothing is installed. apt-get gets its own lists and state below .driver/, so that the sources of
the machine, which may lack the component non-free, stay as they are; Debian's signatures are
checked. What is there is not fetched again. What cannot be fetched is told in one line, which the
tests repeat when they skip, and the exit code is 0: a machine without network is no error.
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import libraries

KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SOURCES = pathlib.Path("/etc/apt")
ARCHIVE = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
SECONDS = 1800


class Missing(Exception):
    """Why something cannot be fetched, in one line."""


def run(*command, cwd=None):
    """The output of a command; the last line of stderr is the reason if it fails."""
    name = "pip" if "pip" in command else pathlib.Path(command[0]).name
    try:
        done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True,
                              text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise Missing(f"{name} is not there") from error
    except subprocess.TimeoutExpired as error:
        raise Missing(f"{name} took more than {SECONDS} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Missing(f"{name}: {last.removeprefix('E: ').removeprefix('ERROR: ')}")
    return done.stdout


# ---- Debian's packages ----

def mirror(kind, default):
    """The address of the archive whose path ends with /`kind`, as the machine's own sources name
    it."""
    for path in (SOURCES / "sources.list", *sorted(SOURCES.glob("sources.list.d/*"))):
        text = path.read_text(errors="replace") if path.is_file() else ""
        for line in text.splitlines():
            found = re.search(rf"https?://\S+/{kind}(?=/?(\s|$))", line)
            if found and not line.lstrip().startswith("#"):
                return found.group(0)
    return default


def write_sources(path, branches):
    suites = sorted({suite for branch in branches for suite in branch.suites})
    lines = []
    for suite in suites:
        archive = (mirror("debian-security", SECURITY) if suite.endswith("-security")
                   else mirror("debian", ARCHIVE))
        lines.append(f"deb [arch=amd64 signed-by={KEYRING}] {archive} {suite} non-free\n")
    path.write_text("".join(lines))


class Apt:
    """apt-get and apt-cache with sources, lists and state of their own, in `folder`."""

    def __init__(self, folder, branches):
        for name in ("lists/partial", "cache/archives/partial", "log"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        write_sources(folder / "sources.list", branches)
        settings = {
            "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-",
            "Dir::Etc::preferences": "-", "Dir::Etc::preferencesparts": "-",
            "Dir::State": folder, "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status", "Dir::Cache": folder / "cache",
            "Dir::Log": folder / "log", "APT::Architecture": "amd64",
            "APT::Sandbox::User": "", "Acquire::Retries": "1", "Acquire::http::Timeout": "30",
            "Acquire::Languages": "none",
        }
        self.options = [f"-o{name}={value}" for name, value in settings.items()]

    def get(self, *words, cwd=None):
        return run("apt-get", "-q", *self.options, *words, cwd=cwd)

    def versions(self, package):
        """The versions that the suites hold, newest first."""
        lines = run("apt-cache", *self.options, "madison", package).splitlines()
        return [line.split("|")[1].strip() for line in lines if "|" in line]


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
    if platform.machine() != "x86_64":
        raise Missing(f"this machine is {platform.machine()}, not x86_64")
    if not KEYRING.exists():
        raise Missing(f"{KEYRING} is not there: only Debian's packages hold them")
    with tempfile.TemporaryDirectory(dir=libraries.FOLDER, prefix="apt-") as name:
        apt = Apt(pathlib.Path(name), missing)
        apt.get("update", "--error-on=any")
        for branch in missing:
            try:
                into(libraries.driver_folder(branch),
                     lambda folder, branch=branch: fetch_driver(apt, branch, folder))
            except Missing as reason:
                yield str(reason)


# ---- PyPI's packages ----

def fetch_runtime(requirement, folder):
    """Gets the libraries of a runtime's wheel into the new folder `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        run(sys.executable, "-m", "pip", "install", "--disable-pip-version-check",
            "--root-user-action=ignore", "--retries", "1", "--only-binary", ":all:", "--no-deps",
            "--no-compile", "--target", name, requirement)
        for path in pathlib.Path(name).rglob("nvidia/*/lib/lib*"):
            shutil.move(path, folder / path.name)


def fetch_runtimes():
    for version, requirement in libraries.RUNTIMES.items():
        if version not in libraries.runtimes():
            into(libraries.runtime_folder(version),
                 lambda folder, what=requirement: fetch_runtime(what, folder))


def fetch_torch(folder):
    run(sys.executable, "-m", "venv", "--clear", folder)
    run(libraries.TORCH_PYTHON, "-m", "pip", "install", "--disable-pip-version-check",
        "--no-cache-dir", "--only-binary", ":all:", libraries.TORCH)
    (folder / "complete").touch()


# ---- both ----

def into(target, fetch):
    """Fills a new folder, and gives it its name when it is whole."""
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    partial.mkdir()
    try:
        fetch(partial)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


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
