#!/usr/bin/env python3
"""usage: headers.py MAJOR FOLDER

Gets NVIDIA's headers of CUDA 12 or 13 from PyPI into the new folder FOLDER, in the layout of the
wheels; FOLDER/include leads to those of the driver and the runtime. Some of the wheels are 600 MB
long, so only the parts that hold headers are fetched. Prints the reason, and exits with 1, if they
cannot be had.
"""
import hashlib
import io
import os
import pathlib
import re
import sys
import urllib.parse
import urllib.request
import zipfile

import download

PYPI = "https://pypi.org/simple"
SECONDS = 30
READ_AHEAD = 1 << 16
MARK = "fetched"  # in a folder that is whole; scripts/setup looks for it
PROBLEMS = (download.Missing, OSError, zipfile.BadZipFile)

# By the version of CUDA, package: version, what the paths of the headers contain, and the SHA-256
# of the headers in the order of their names.
WHEELS = {
    "12": {
        "nvidia-cuda-runtime-cu12": ("12.8.90", "/include/",
            "aff61f3e3c566bd3d3dc8cd8cd439ead6c24ba1a3286773129e027f7c762f432"),
        "nvidia-cuda-nvcc-cu12": ("12.8.93", "/include/crt/",
            "da6147b1e7989949924172385628681edf4a2816b41b772b5ecad9ff5c716e41"),
        "nvidia-cuda-cccl-cu12": ("12.8.90", "/include/nv/",
            "f76237987c892d619860273f951c01748e3e2c35bb41b892a94b138fc381ae4d"),
        "nvidia-cublas-cu12": ("12.8.4.1", "/include/",
            "83ed8defd963f99c67e8a21bcf6daf19b722e9b09a45e7560562239db0c0bb0f"),
        "nvidia-cufft-cu12": ("11.3.3.83", "/include/",
            "7389bd8e078587b72e63ce6c93e9ebc5059338496e115fe089f14112a785c73e"),
        "nvidia-cusolver-cu12": ("11.7.3.90", "/include/",
            "0fb45b95632c959733a1962c907b6f1b5a697f89280134996da175a217a6c627"),
        "nvidia-cusparse-cu12": ("12.5.8.93", "/include/",
            "f806cb9b280c4280a74893fa735301e6f55f41c3aeb12838499a2cf38415b4de"),
    },
    "13": {
        "nvidia-cuda-runtime": ("13.0.96", "/include/",
            "79ac5a47d68b7b97f886c07fa2f097474409c615ecdd0ca798faf0f6a609b2f1"),
        "nvidia-cuda-crt": ("13.0.88", "/include/",
            "2662bd0fcc76a33ccfb41c0ef99d37f5d6c1701dc168e6c65f9884e2eac4e895"),
        "nvidia-cuda-profiler-api": ("13.0.85", "/include/",
            "e7c7fb33535d6901e24726abd49b7f4f7081884b4de3b7959ae872174bd107da"),
        "nvidia-cuda-cccl": ("13.0.85", "/include/nv/",
            "0d9eb1c53316058fc680322d5360774a5c61e785b1a85ee0e907641968598155"),
        "nvidia-cublas": ("13.1.0.3", "/include/",
            "93802f16bde1745cc6c88374dbb4d2cb73cb2ff366d12203521e762bb1587079"),
        "nvidia-cufft": ("12.0.0.61", "/include/",
            "94da37516bf666534d9ddf04990b0a6ff2231ce1f39e0ee3980859a35aac8239"),
        "nvidia-cusolver": ("12.0.4.66", "/include/",
            "6cb811b47b2734ff198068e7160a7499eaf56334eb8fe13f73d7fbad1d9e2609"),
        "nvidia-cusparse": ("12.6.3.3", "/include/",
            "e537d3712cfef60ab9f4a5c2039a0009df5132bc74fcacac40f205d177cae26c"),
        "nvidia-cudnn-cu13": ("9.19.0.56", "/include/",
            "fe20f00a322fcc1351834734667b0d3e212434c8ea78b04ea90c871c9f67dc65"),
        "nvidia-nccl-cu13": ("2.28.9", "/include/",
            "fe2647f9b3f54a6bad7f83b1e8ae1ee421b4a7b85dbee2bd83c591bb7c782954"),
        "nvidia-nvml-dev": ("13.5.37", "/include/",
            "2b404c6e6e22d0098031a15352d888a3ab92238cad9980e962907795662c4be7"),
    },
}
# Where the headers of the driver and the runtime are in a folder.
INCLUDE = {"12": "nvidia/cuda_runtime/include", "13": "nvidia/cu13/include"}


def request(url, method="GET", **headers):
    asked = urllib.request.Request(url, headers=headers, method=method)
    return urllib.request.urlopen(asked, timeout=SECONDS)


def address(package, version):
    """The address of the wheel for x86-64."""
    index = os.environ.get("PIP_INDEX_URL", PYPI).rstrip("/") + f"/{package}/"
    with request(index) as answer:
        links = re.findall(r'href="([^"#]+)', answer.read().decode())
    for link in links:
        if re.search(rf"-{re.escape(version)}-\S*manylinux\S*x86_64\.whl$", link):
            return urllib.parse.urljoin(index, link)
    raise download.Missing(f"{index} has no {package} {version}")


class Remote(io.RawIOBase):
    """A file of a server that sends parts of it."""

    def __init__(self, url):
        self.url, self.at = url, 0
        with request(url, method="HEAD") as answer:
            self.length = int(answer.headers["Content-Length"])

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.length}[whence]
        return self.at

    def readinto(self, buffer):
        end = min(self.at + len(buffer), self.length)
        if self.at >= end:
            return 0
        with request(self.url, Range=f"bytes={self.at}-{end - 1}") as answer:
            if answer.status != 206:
                raise download.Missing(f"the server of {self.url} sends no parts of files")
            part = answer.read()
        buffer[:len(part)] = part
        self.at += len(part)
        return len(part)


def fetch(package, version, part, known, folder):
    """Unpacks the headers of a wheel into a folder."""
    digest = hashlib.sha256()
    remote = Remote(address(package, version))
    with zipfile.ZipFile(io.BufferedReader(remote, READ_AHEAD)) as wheel:
        for name in sorted(name for name in wheel.namelist() if part in name):
            content = wheel.read(name)
            digest.update(content)
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    if digest.hexdigest() != known:
        raise download.Missing(f"the headers of {package} {version} have the SHA-256 "
                               f"{digest.hexdigest()}, not {known}")


def fetch_all(major, folder):
    for package, wheel in WHEELS[major].items():
        fetch(package, *wheel, folder)
    if major == "12":  # each wheel has a folder of its own
        for wheel, name in ("cuda_nvcc", "crt"), ("cuda_cccl", "nv"):
            (folder / INCLUDE[major] / name).symlink_to(f"../../{wheel}/include/{name}")
    (folder / "include").symlink_to(INCLUDE[major])
    (folder / MARK).touch()


def get(major, folder):
    """Makes the folder, or makes it anew if it is not this program's. Raises one of PROBLEMS."""
    if not (folder / MARK).exists():
        download.into(folder, lambda partial: fetch_all(major, partial))


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in WHEELS:
        print(__doc__.partition("\n")[0], file=sys.stderr)
        return 2
    try:
        get(sys.argv[1], pathlib.Path(sys.argv[2]))
    except PROBLEMS as reason:
        print(reason)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
