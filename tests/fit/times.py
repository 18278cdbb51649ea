#!/usr/bin/env python3
"""Compares the times of steps on the simulated GPU with times that others measured on real ones.

usage: tests/fit/times.py [BUILD] [--run [--again] [--only TEXT]] [--kinds FILE]

Rows are in tests/fit/data/times/*.json, with their sources. --run runs those without a result in
tests/fit/results/times.json, or all rows with --again, with ample memory. --only chooses rows whose
keys contain TEXT. --kinds writes the kernels of a step of each row by kinds of work, to which the
parts of the rates in src/sim/driver/exec/roofline.c can be fitted. Half of the rows, by a hash of
their names, are for calibration.
"""
import argparse
import collections
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import rows as data

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results/times.json"
PYTHON = ROOT / ".venv/bin/python"
AT_ONCE = 4  # rows of one process
ABOUT = ("name", "ms", "file", "profile", "half", "key", "library", "source")
ESTIMATE = re.compile(r"estimate (\d+) ns: (\w+)\??, (\d+) ns operations, (\d+) \+ (\d+) ns bytes")
MARK = "cuProfilerStop"


def load():
    found = []
    for path in sorted((HERE / "data/times").glob("*.json")):
        source = json.loads(path.read_text())
        for row in source["rows"]:
            found.append(dict(row, source=path.stem, library=source.get("library"),
                              half=data.half(row["name"]), key=f"{path.stem} {row['name']}"))
    return found


def groups(left):
    """Parts of the rows that one process can run."""
    for _, part in itertools.groupby(left, key=lambda row: (row["profile"], row["library"])):
        part = list(part)
        for begin in range(0, len(part), AT_ONCE):
            yield part[begin:begin + AT_ONCE]


def kinds_of(log, steps):
    """The kernels of the last step of each row: kind, times of operations and of bytes."""
    found, last = [], collections.deque()
    for line in log:
        match = ESTIMATE.search(line)
        if match:
            last.append([match[2], *map(int, match.groups()[2:])])
        elif MARK in line:
            kernels = steps[len(found)]["kernels"]
            found.append(list(last)[-kernels:])
            last.clear()
    return found


def run(args, part):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        settings = [{name: value for name, value in row.items() if name not in ABOUT}
                    for row in part]
        words = [args.build / "spillway", "sim", "--profile", part[0]["profile"], "--memory",
                 "1TiB", *(["--sim-log", log] if args.kinds else []), "--", PYTHON,
                 HERE / "timed.py", json.dumps(settings)]
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        if part[0]["library"]:
            environment["PYTHONPATH"] = str(args.build / "fit-packages" / part[0]["library"])
        ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        steps = [json.loads(line.partition(" ")[2]) for line in ended.stdout.splitlines()
                 if line.startswith("row ")]
        if len(steps) < len(part):
            print(ended.stderr[-600:], file=sys.stderr)
        if not args.kinds:
            return steps, []
        with log.open(errors="replace") as lines:
            return steps, kinds_of(lines, steps)


def write(path, results):
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(results[key])}" for key in sorted(results))
    path.write_text("{\n" + lines + "\n}\n")


def run_all(args, table, results):
    kinds = json.loads(args.kinds.read_text()) if args.kinds and args.kinds.exists() else {}
    left = [row for row in table if args.only in row["key"] and
            (args.again or row["key"] not in (kinds if args.kinds else results))]
    for part in groups(left):
        steps, found = run(args, part)
        for row, step, kernels in itertools.zip_longest(part, steps, found):
            if not step or not step["kernels"]:
                print(f"{row['key']}: no step: {step}", file=sys.stderr)
                continue
            results[row["key"]] = step
            kinds[row["key"]] = kernels
            print(f"{row['key']}: {step['ns'] / 1e6:.1f} ms, measured {row['ms']}", flush=True)
        write(RESULTS, results)
        if args.kinds:
            write(args.kinds, kinds)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report(table, results):
    done = [row for row in table if row["key"] in results]
    errors = {row["key"]: 100 * (results[row["key"]]["ns"] / 1e6 / row["ms"] - 1) for row in done}
    for row in sorted(done, key=lambda row: abs(errors[row["key"]])):
        print(f"{errors[row['key']]:+7.1f} %  {results[row['key']]['ns'] / 1e6:9.1f} ms, measured "
              f"{row['ms']:9.1f}  {row['half']:11}  {row['key']}")
    parts = [("all", done)] + [(half, [row for row in done if row["half"] == half])
                               for half in ("calibration", "held out")]
    parts += [(source, [row for row in done if row["source"] == source])
              for source in sorted({row["source"] for row in done})]
    for name, part in parts:
        sizes = [abs(errors[row["key"]]) for row in part]
        if sizes:
            print(f"{name}: {len(sizes)} rows, median {statistics.median(sizes):.1f} %, "
                  f"P90 {quantile(sizes, 0.9):.1f} %, worst {max(sizes):.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", type=pathlib.Path)
    args = parser.parse_args()
    args.build = args.build.resolve()
    table = load()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if args.run:
        run_all(args, table, results)
    report(table, results)


if __name__ == "__main__":
    main()
