#!/usr/bin/env python3
"""Installs a wheel into a fresh virtual environment without an index and uses it, as test_wheel.py
wants it. Needs only the standard library of Python 3.8, and runs in other roots too.

    installed.py WHEEL FOLDER LINKED [JUPYTER NOTEBOOK]
        prints JSON: what each command did, and what the program found

LINKED is a folder with a program that registers memory, and its libraries; NOTEBOOK a program that
runs a notebook with the packages in JUPYTER.
"""
import json
import pathlib
import re
import subprocess
import sys
import venv

# What the wheel's object and package do in a program.
PROGRAM = '''
import ctypes, json, os, sys

import spillway

def allocate(version):
    """The statistics while a program of this version of CUDA has allocated 5 MiB."""
    runtime = ctypes.CDLL(f"libcudart.so.{version}")
    address = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(5 << 20)) == 0
    stats = spillway.stats()
    runtime.cudaFree(address)
    return stats

found = {"stats": [allocate(12), allocate(13)], "package": spillway.__file__, "pid": os.getpid()}
page, output = sys.argv[1:]
with open(output, "w") as file:
    json.dump(found, file)
if page:
    made = spillway.report(output=page)
    assert made, made.problem
'''

# Prints where the loader finds what libunwind needs.
NEEDS = '''
import ctypes, sys

ctypes.CDLL(sys.argv[1])
print({line.split()[-1] for line in open("/proc/self/maps") if "/liblzma.so." in line})
'''


class Installed:
    def __init__(self, wheel, folder):
        self.folder = folder
        self.bin = folder / "env/bin"
        self.environment = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(folder),
                            "PIP_CONFIG_FILE": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"}
        self.done = {}
        venv.create(folder / "env", with_pip=True)
        self.run("install", "python", "-m", "pip", "--disable-pip-version-check", "install",
                 "--no-index", "--no-compile", wheel)

    def run(self, name, program, *arguments, **variables):
        """Runs a program of the environment and keeps what it did by `name`."""
        done = subprocess.run([str(self.bin / program), *map(str, arguments)], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**self.environment, **variables})
        self.done[name] = {"status": done.returncode, "out": done.stdout, "err": done.stderr}

    def run_program(self, name, *command, **variables):
        """Runs `command` with the program, which writes NAME.json; the loader writes which
        libraries it loads."""
        self.run(name, *command, f"{name}.json", LD_DEBUG="files",
                 LD_DEBUG_OUTPUT=str(self.folder / "loaded"), **variables)

    def found(self, name):
        """What the program wrote into the file NAME.json, and the libraries that the object or the
        launcher named by their path."""
        file = self.folder / f"{name}.json"
        if not file.exists():
            return None
        found = json.loads(file.read_text())
        log = self.folder / f"loaded.{found['pid']}"
        found["files"] = re.findall(r"file=(/\S+) \[0\];  generating link map",
                                    log.read_text(errors="replace"))
        return found

    def files(self):
        return sorted(str(path.relative_to(self.folder / "env"))
                      for path in (self.folder / "env").rglob("*spillway*"))


def main():
    wheel, folder, linked, *notebook = map(pathlib.Path, sys.argv[1:])
    installed = Installed(wheel, folder)
    program = folder / "program.py"
    program.write_text(PROGRAM)
    (folder / "bad.json").write_text('{"version": 1, "rules": [{"placemnt": "host"}]}')
    native = next((folder / "env").glob("lib/python3*/site-packages/spillway/native"))

    files = installed.files()
    pages = [str(path.relative_to(native)) for path in native.rglob("*.md")]
    run = installed.run
    run("version", "spillway", "--version")
    run("module", "python", "-m", "spillway", "--version")
    run("check", "spillway", "policy", "check", "optimizer-to-host")
    run("check bad", "spillway", "policy", "check", "bad.json")
    installed.run_program("sim", "spillway", "sim", "--memory", "1GiB",
                          "--policy", "optimizer-to-host", "--stats", "s.json",
                          "--record", "r.rec", "--", "python", program, "page.html")
    run("sites", "spillway", "sites", "s.json")
    run("world", "spillway", "sim", "--world", "4", "--rank", "3", "--", "python", "-c",
        "import os, sitecustomize; print(os.environ['RANK'], sitecustomize.MODULE)")
    installed.run_program("run", "python", "-m", "spillway", "run", "--", "python", program, "",
                          LD_LIBRARY_PATH=str(native / "sim"), SPILLWAY_SIM_MEMORY="1GiB")
    run("needs", "python", "-c", NEEDS, native / "lib/libunwind.so.8")
    run("linked", linked / "registers_linked", LD_LIBRARY_PATH=str(linked),
        LD_PRELOAD=str(native / "libspillway.so"))
    if notebook:
        run("notebook", "spillway", "sim", "--memory", "1GiB", "--record", "n-%p.rec", "--",
            "python", notebook[1], PYTHONPATH=str(notebook[0]))
        run("marks", "spillway", "report", *folder.glob("n-*.rec"))
    run("uninstall", "python", "-m", "pip", "uninstall", "--yes", "spillway")
    page = folder / "page.html"
    print(json.dumps({
        "python": sys.version.split()[0], "native": str(native), "done": installed.done,
        "sim": installed.found("sim"), "run": installed.found("run"),
        "files": files, "pages": pages,
        "page": page.read_text()[:15] if page.exists() else "", "left": installed.files()}))


if __name__ == "__main__":
    main()
