#!/usr/bin/env python3
"""Print the folder that holds HEADER for this major version of CUDA, or nothing if there is none.

    find_header.py CUDA_HEADERS MAJOR HEADER

Searches, in this order, the folder of the CUDA headers, the wheels beside that folder, .cuda/ of
this tree, the nvidia-* wheels of .venv and .driver/torch, and the wheels of the python3 that runs
this script.
"""
import glob
import os
import re
import sys
import sysconfig

# Libraries whose versions do not follow CUDA's: any header will do.
INDEPENDENT = ("cudnn.h", "nccl.h", "nvml.h")
WHEEL = re.compile(r"nvidia/(?:cu(\d+)|\w+)/include$")


def candidates(cuda_headers):
    here = os.path.dirname(os.path.abspath(__file__))
    tree = os.path.normpath(os.path.join(here, "../../.."))
    yield cuda_headers
    beside = re.match(r"(.*)/nvidia/\w+/include$", os.path.realpath(cuda_headers))
    for root in (*([beside.group(1)] if beside else []), os.path.join(tree, ".cuda"),
                 *glob.glob(os.path.join(tree, ".venv/lib/python3*/site-packages")),
                 *glob.glob(os.path.join(tree, ".driver/torch/lib/python3*/site-packages")),
                 sysconfig.get_paths()["purelib"]):
        yield from sorted(glob.glob(os.path.join(root, "nvidia/*/include")))


def is_of(folder, major, header):
    """Wheels of CUDA 13 share one folder, named after the version. In wheels of CUDA 12, each
    library has a folder."""
    wheel = WHEEL.search(folder)
    if wheel is None or header in INDEPENDENT:
        return True
    return int(wheel.group(1) or 12) == major


for folder in candidates(sys.argv[1]):
    named = sys.argv[3]
    if is_of(folder, int(sys.argv[2]), named) and os.path.exists(os.path.join(folder, named)):
        print(folder)
        break
