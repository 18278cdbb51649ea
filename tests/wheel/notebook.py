#!/usr/bin/env python3
"""Runs a notebook as Jupyter does, for test_wheel.py: its kernel is a process of its own.

    notebook.py    prints JSON: what the cells showed, in order
"""
import json

import nbclient
import nbformat

CELLS = (
    """
import ctypes, spillway

runtime = ctypes.CDLL("libcudart.so.13")
kept, freed = ctypes.c_void_p(), ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(kept), ctypes.c_size_t(5 << 20)) == 0
""",
    "%load_ext spillway\n%spillway",
    """%%spillway evaluation
assert runtime.cudaMalloc(ctypes.byref(freed), ctypes.c_size_t(3 << 20)) == 0
assert runtime.cudaFree(freed) == 0
print("evaluated")
""",
    "spillway.report()",
)


def shown(cell):
    """What a cell showed: text that it printed, and the forms of its result."""
    return {name: text for output in cell.outputs
            for name, text in [*output.get("data", {}).items(),
                               (output.get("name"), output.get("text"))] if name}


def main():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    nbformat.validate(notebook)
    print(json.dumps([shown(cell) for cell in notebook.cells]))


if __name__ == "__main__":
    main()
