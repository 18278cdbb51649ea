#!/usr/bin/env python3
"""Imports PyTorch, waits for its turn on the GPU, then runs a script.

    turn.py GATE SCRIPT [ARGUMENT ...]

The turn begins when the file GATE is there. Importing takes longer than most runs, and several
processes can do it at once."""
import os
import runpy
import sys
import time

import torch  # noqa: F401

POLL = 0.005

if __name__ == "__main__":
    gate = sys.argv[1]
    while not os.path.exists(gate):
        time.sleep(POLL)
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
