#!/usr/bin/env python3
"""One wheel of each minor version of PyTorch, for docs/dev/results/pytorch-features.md.

    each.py                      prints "MINOR WHEEL CPYTHON..." for each: the newest of its wheels,
                                 and the versions of CPython to install it with, best first
    each.py PYTHON               prints what the torch of that interpreter needs beside itself, as
                                 requirements of pip

They are installed in .venv-each/MINOR/ by `scripts/setup --torch-each`, from PyPI. What the
simulated GPU has itself is left out.
"""
import json
import pathlib
import re
import subprocess
import sys

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

ASK = """
import importlib.metadata, json
print(json.dumps(importlib.metadata.requires("torch")))
"""


def interpreter(minor):
    return FOLDER / minor / "bin/python"


def library(name):
    """nvidia-cublas-cu12 -> cublas"""
    return re.sub(r"-cu\d+$", "", name.removeprefix("nvidia-"))


def needs(requirements):
    """The lines of a wheel's requirements without what is simulated."""
    for line in requirements:
        text, _, condition = (part.strip() for part in line.partition(";"))
        if "extra ==" in condition:
            continue
        name = re.match(r"[\w.-]+", text)[0]
        if name == "cuda-toolkit":
            extras, version = re.search(r"\[(.*?)\](.*)", text).groups()
            kept = [extra for extra in extras.split(",") if extra not in SIMULATED]
            text = f"cuda-toolkit[{','.join(kept)}]{version}"
        elif name.startswith("nvidia-") and library(name) in SIMULATED:
            continue
        yield f"{text}; {condition}" if condition else text


def main(argv):
    if not argv:
        for minor, words in WHEELS.items():
            print(minor, *words)
        return 0
    done = subprocess.run([argv[0], "-c", ASK], capture_output=True, text=True, check=True)
    print("\n".join([*needs(json.loads(done.stdout)), "numpy"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
