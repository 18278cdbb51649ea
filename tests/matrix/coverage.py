#!/usr/bin/env python3
"""usage: scripts/test --coverage

Builds build-coverage/ with gcc's counters, runs the quick tests but those with PyTorch, NVIDIA's
libraries and the checks of the source, and tells which lines and branches of src/ ran: by layer
here and in docs/dev/results/coverage.md, line by line in build-coverage/coverage/index.html. Then
it lists the returns that no test reached in the layers that keep the program's memory.

A process writes its counters when it exits. What ran only in processes that were killed, or that
ended by _exit, is not counted, so the figures are lower bounds.
"""
import collections
import datetime
import json
import pathlib
import shutil
import subprocess
import sys

from run import ROOT, commit

FOLDER = ROOT / "build-coverage"
REPORT = FOLDER / "coverage"
RESULTS = ROOT / "tests/matrix/results/coverage.json"
WITHOUT = ("long", "slow", "torch", "driver", "style", "bench", "gpu", "mutants")
# Their uncovered returns are listed.
MEMORY = ("pool", "migrate", "backend", "serve")
# A debug build: a line is one place. Counters are exact with threads. gcc's own execve writes the
# counters for the last time: a helper that is started in the program's memory (src/system/child.c)
# would end the counting of the program.
OPTIONS = ("-Db_coverage=true", "--buildtype=debug", "-Dbench=false",
           "-Dc_args=-fprofile-update=atomic -fno-builtin-execve")


def build():
    if not (FOLDER / "build.ninja").exists():
        subprocess.run(["meson", "setup", FOLDER, *OPTIONS], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", FOLDER, "--quiet"], check=True)


def run_tests():
    """Runs the tests with counters that begin at 0; the exit status of meson."""
    for old in FOLDER.rglob("*.gcda"):
        old.unlink()
    command = ["meson", "test", "-C", FOLDER, "--no-rebuild", "--print-errorlogs",
               "--timeout-multiplier=3"]
    for suite in WITHOUT:
        command += ["--no-suite", suite]
    return subprocess.run(command).returncode


def read_counters():
    """What gcovr says of each file of src/."""
    shutil.rmtree(REPORT, ignore_errors=True)
    REPORT.mkdir()
    subprocess.run(["gcovr", "--root", ROOT, "--object-directory", FOLDER, "--filter", "src/",
                    "--exclude-unreachable-branches", "--gcov-ignore-parse-errors",
                    "--json", REPORT / "coverage.json",
                    "--html-details", REPORT / "index.html", FOLDER], cwd=ROOT, check=True,
                   stderr=subprocess.DEVNULL)
    return json.loads((REPORT / "coverage.json").read_text())["files"]


def layer(name):
    path = pathlib.PurePosixPath(name)
    return path.parts[1] if len(path.parts) > 2 else path.name


def lines_of(file):
    return [line for line in file["lines"] if not line["gcovr/noncode"]]


def sums(files):
    """Of each layer: lines, lines that ran, branches, branches that were taken."""
    found = collections.defaultdict(lambda: [0, 0, 0, 0])
    for file in files:
        total = found[layer(file["file"])]
        for line in lines_of(file):
            total[0] += 1
            total[1] += line["count"] > 0
            total[2] += len(line["branches"])
            total[3] += sum(branch["count"] > 0 for branch in line["branches"])
    return [{"folder": folder, "lines": lines, "lines_run": run, "branches": branches,
             "branches_taken": taken}
            for folder, (lines, run, branches, taken) in sorted(found.items())]


def unreached(file):
    """The returns that never ran, as text."""
    text = (ROOT / file["file"]).read_text().splitlines()
    for line in lines_of(file):
        source = text[line["line_number"] - 1].strip()
        if line["count"] == 0 and source.startswith(("return", "goto")):
            yield f"{file['file']}:{line['line_number']}: {source}"


def share(part, whole):
    return f"{100 * part / whole:5.1f} %" if whole else "      -"


def main():
    if sys.argv[1:]:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    build()
    status = run_tests()
    files = read_counters()
    layers = sums(files)
    rows = ",\n".join("  " + json.dumps(row) for row in layers)
    RESULTS.write_text(f'{{"commit": "{commit()}", "date": "{datetime.date.today()}", '
                       f'"layers": [\n{rows}\n]}}\n')
    subprocess.run(["scripts/docs"], cwd=ROOT)
    print("\nlayer             lines  branches")
    for row in layers:
        print(f"{row['folder']:14} {share(row['lines_run'], row['lines'])} "
              f"  {share(row['branches_taken'], row['branches'])}")
    for name in MEMORY:
        found = [text for file in files if layer(file["file"]) == name for text in unreached(file)]
        print(f"\nsrc/{name}/: {len(found)} returns that no test reached")
        print("\n".join(found))
    return status


if __name__ == "__main__":
    sys.exit(main())
