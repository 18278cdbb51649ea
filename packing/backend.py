#!/usr/bin/env python3
"""usage: backend.py FOLDER

Writes the source distribution into FOLDER, and prints its path. pip calls the functions of this
module to build spillway from source (PEP 517).

A wheel that is built from source is for this machine: it uses its libunwind and cJSON. pip needs
gcc, libunwind and cJSON with their headers; NVIDIA's headers are fetched if they are missing."""
import gzip
import io
import pathlib
import subprocess
import sys
import tarfile

import make_wheel

# The date of every file in the archive, 1980-01-01: the same tree gives the same archive.
DATE = 315532800


def tracked():
    """The files of the tree that git knows, as they are now."""
    listed = subprocess.run(["git", "-C", make_wheel.SOURCE, "ls-files", "-z"], capture_output=True,
                            check=True, text=True).stdout
    paths = [pathlib.Path(name) for name in listed.split("\0") if name]
    return sorted(path for path in paths if (make_wheel.SOURCE / path).exists())


def add(archive, name, content, mode=0o644, link=None):
    member = tarfile.TarInfo(name)
    member.mtime, member.mode, member.size = DATE, mode, len(content)
    if link is not None:
        member.type, member.linkname = tarfile.SYMTYPE, link
    archive.addfile(member, io.BytesIO(content))


def build_sdist(folder, config_settings=None):
    """Writes the source distribution into a folder. Returns its name."""
    version = make_wheel.version()
    top = f"spillway-{version}"
    name = f"{top}.tar.gz"
    with open(pathlib.Path(folder, name), "wb") as file, \
            gzip.GzipFile("", "wb", mtime=DATE, fileobj=file) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in tracked():
            file = make_wheel.SOURCE / path
            if file.is_symlink():
                add(archive, f"{top}/{path}", b"", link=str(file.readlink()))
            else:
                executable = file.stat().st_mode & 0o100
                add(archive, f"{top}/{path}", file.read_bytes(), 0o755 if executable else 0o644)
        add(archive, f"{top}/PKG-INFO", make_wheel.metadata(version).encode())
    return name


def build_wheel(folder, config_settings=None, metadata_directory=None):
    """Builds a wheel for this machine into a folder. Returns its name."""
    return make_wheel.make_here(pathlib.Path(folder)).name


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.partition("\n")[0])
    print(pathlib.Path(sys.argv[1], build_sdist(sys.argv[1])))
