"""The build with headers of CUDA 12: the subfolder cuda12/ of the build folder, which is in the
environment as BUILD_ROOT."""
import fcntl
import os
import pathlib
import subprocess

import libraries

BUILD = pathlib.Path(os.environ["BUILD_ROOT"]).absolute() / "cuda12"
HEADERS = libraries.SOURCE / ".cuda12/include"


def run(*command, **variables):
    env = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY")}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**env, **variables}, cwd=BUILD.parent, stdin=subprocess.DEVNULL,
                          timeout=1500)
    return done


def why_not():
    """A line that says why it cannot be built, or None."""
    if not (HEADERS / "cuda.h").exists():
        return "skipped: no headers of CUDA 12 in .cuda12/: scripts/setup --cuda12 gets them"
    return None


def build():
    """Makes it, or brings it up to date. One process after the other: Meson refuses a second."""
    with open(BUILD.parent / "cuda12.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (BUILD / "build.ninja").exists():
            done = run("meson", "setup", BUILD, libraries.SOURCE, f"-Dcuda-headers={HEADERS}",
                       "-Dwerror=true")
            assert done.returncode == 0, done.stdout + done.stderr
        done = run("ninja", "-C", BUILD)
        assert done.returncode == 0, done.stdout + done.stderr
