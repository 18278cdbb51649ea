"""The environment of scripts/setup --integrations: where it is, or why it is not used."""
import os
import pathlib
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PYTHON = SOURCE / ".integrations/bin/python"
PACKAGE = SOURCE / "python"
COMMAND = pathlib.Path(os.environ["BUILD_ROOT"], "spillway")
SKIPPED = 77


def why_not(*modules):
    """None if these can be imported there; else a line that says what is missing."""
    if os.environ.get("BUILD_SANITIZED", "none") != "none":
        return "the interpreter is not built with the sanitizer"
    if not PYTHON.exists():
        return "scripts/setup --integrations has not been run"
    done = subprocess.run([PYTHON, "-c", f"import {', '.join(modules)}"], capture_output=True,
                          text=True)
    return (f"scripts/setup --integrations has not installed all: {done.stderr.splitlines()[-1]}"
            if done.returncode != 0 else None)


def environment(**variables):
    """That of this process without settings of spillway, and with the package of this tree."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("SPILLWAY", "LD_", "PYTHON"))}
    return {**env, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1", **variables}


def run_tests(*modules):
    """Runs the tests of the main module, which need these modules."""
    reason = why_not(*modules)
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
