#!/usr/bin/env python3
"""The PyTorch that the simulated GPU can serve: where it is, or why there is none.

As a command: prints its interpreter, or with status 77 the reason.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CUDA_MAJORS = (12, 13)
QUESTION = """
import importlib.util, json, pathlib, runpy, sys
folder = pathlib.Path(importlib.util.find_spec("torch").origin).parent
version = runpy.run_path(folder / "version.py")  # to import all of it takes seconds
python = f"{sys.version_info.major}.{sys.version_info.minor}{sys.abiflags}"
print(json.dumps([version["__version__"], version["cuda"], python]))
"""
TRITON_NEEDS = """
import importlib.util, sys, sysconfig
print(sysconfig.get_path("include"))
sys.exit(importlib.util.find_spec("triton") is None)
"""


def interpreters():
    """SPILLWAY_TEST_TORCH names the Python to use; else .venv of this tree, else our own."""
    named = os.environ.get("SPILLWAY_TEST_TORCH")
    return [named] if named else [str(SOURCE / ".venv/bin/python"), sys.executable]


def versions(interpreter):
    """(its torch's, that of the CUDA that this is for, Python's), or a line that says why not."""
    try:
        done = subprocess.run([interpreter, "-c", QUESTION], text=True, capture_output=True)
    except OSError:
        return f"{interpreter} is not there"
    return json.loads(done.stdout) if done.returncode == 0 else f"{interpreter} has no torch"


def judge(interpreter):
    """None if its torch will do, else what was found."""
    found = versions(interpreter)
    if isinstance(found, str):
        return found
    version, cuda, _ = found
    if cuda is None:
        return f"{interpreter} has torch {version}, which is for the CPU only"
    if int(cuda.split(".")[0]) not in CUDA_MAJORS:
        return f"{interpreter} has torch {version}, which is for CUDA {cuda}"
    return None


def find():
    """(interpreter, None), or (None, a line that says what was found and what is needed)."""
    findings = []
    for interpreter in interpreters():
        finding = judge(interpreter)
        if finding is None:
            return interpreter, None
        findings.append(finding)
    return None, (f"skipped: needs a torch for CUDA {' or '.join(map(str, CUDA_MAJORS))} "
                  f"(scripts/setup --torch gets one); {'; '.join(findings)}")


def why_not_triton(interpreter):
    """None if Triton can compile kernels and, with a C compiler, the functions that launch them;
    else a line that says what is missing."""
    done = subprocess.run([interpreter, "-c", TRITON_NEEDS], text=True, capture_output=True)
    if done.returncode != 0:
        return f"skipped: {interpreter} has no triton"
    if not pathlib.Path(done.stdout.strip(), "Python.h").exists():
        return f"skipped: Triton needs the headers of {interpreter}"
    if not any(map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))):
        return "skipped: Triton needs a C compiler"
    return None


def run_tests(case):
    """Runs the tests of the main module, of which `case` gets the interpreter; the exit status."""
    case.interpreter, reason = find()
    if reason:
        print(reason)
        return 77
    program = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2)
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    found, why = find()
    print(why or found)
    sys.exit(77 if why else 0)
