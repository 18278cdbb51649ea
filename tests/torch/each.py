#!/usr/bin/env python3
"""One wheel of each minor version of PyTorch, for docs/dev/results/pytorch-features.md.

As a command: prints "MINOR WHEEL CPYTHON..." for each, which is the newest of its wheels, and the
versions of CPython to install it with, best first.

They are installed in .venv-each/MINOR/ by `scripts/setup --torch-each`, from PyPI. What the
simulated GPU has itself is left out.
"""
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[2] / ".venv-each"

# Between them they run on each CPython that there are wheels for; 3.13t is the one without a lock.
WHEELS = {
    "2.6": ("2.6.0", "3.12"),
    "2.7": ("2.7.1", "3.10"),
    "2.8": ("2.8.0", "3.13"),
    "2.9": ("2.9.1", "3.13t", "3.13"),
    "2.10": ("2.10.0", "3.14", "3.12"),
    "2.11": ("2.11.0", "3.10"),
    "2.12": ("2.12.1", "3.13"),
    "2.13": ("2.13.0", "3.12"),
    "2.14": ("2.14.1", "3.14", "3.13"),
    "2.15": ("2.15.0", "3.11"),
}

# Of NVIDIA's libraries, those that the simulated GPU stands in for or does without.
SIMULATED = {"cublas", "cuda-runtime", "cudart", "cudnn", "cufft", "cusolver", "cusparse", "nccl",
             "nvjitlink", "cccl"}

def interpreter(minor):
    return FOLDER / minor / "bin/python"


def is_simulated(name):
    """True for a package such as nvidia-cublas-cu12."""
    library = re.fullmatch(r"nvidia-(.+?)(-cu\d+)?", name)
    return library is not None and library[1] in SIMULATED


if __name__ == "__main__":
    for minor, words in WHEELS.items():
        print(minor, *words)
