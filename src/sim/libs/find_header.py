#!/usr/bin/env python3
"""Print the folder that holds HEADER, or nothing if there is none.

    find_header.py CUDA_HEADERS HEADER

Searches, in this order, the folder of the CUDA headers, .cuda/ of this tree, the nvidia-* wheels of
.venv, and those of the python3 that runs this script.
"""
import glob
import os
import sys
import sysconfig


def candidates(cuda_headers):
    here = os.path.dirname(os.path.abspath(__file__))
    tree = os.path.normpath(os.path.join(here, "../../.."))
    yield cuda_headers
    for root in (os.path.join(tree, ".cuda"),
                 *glob.glob(os.path.join(tree, ".venv/lib/python3*/site-packages")),
                 sysconfig.get_paths()["purelib"]):
        yield from sorted(glob.glob(os.path.join(root, "nvidia/*/include")))


for folder in candidates(sys.argv[1]):
    if os.path.exists(os.path.join(folder, sys.argv[2])):
        print(folder)
        break
