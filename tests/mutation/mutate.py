#!/usr/bin/env python3
"""usage: scripts/mutate [--list] [--seed N] [--only PATH] [--shard K/N] [--resume] [--lived]
                      [--minutes M] [--longest S]

Breaks the code of src/ in one small place after the other, and tells which changes no test notices.
Each mutant is compiled in a copy of the tree, build-mutation/, and judged by the tests of its
folder (tests/mutation/suites.py), quick ones first, until one fails or runs into its time limit.
The simulator and the command are left out. The order is random.

What became of each mutant is kept in tests/mutation/results/last.json, from which
docs/dev/results/mutation.md is made. tests/mutation/equivalents.json lists mutants that no test can
kill, each with the reason.

  --list       prints the mutants with their last results, and runs nothing
  --seed N     another order (default 1)
  --only PATH  only mutants of this file or folder; may be given several times
  --shard K/N  only the K-th of N shares, in a build of its own, so that shards can run side by side
  --resume     leaves out mutants that have a result
  --lived      only mutants whose last result is that they lived
  --minutes M  begins no other mutant after M minutes
  --longest S  leaves out tests that take more than S seconds (default 60)
"""
import argparse
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time

import mutants
import suites
from workshop import ROOT, Workshop, tracked

RESULTS = ROOT / "tests/mutation/results/last.json"
EQUIVALENTS = ROOT / "tests/mutation/equivalents.json"


def shard(text):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text}: expected K/N with K from 1 to N")
    return int(match[1]), int(match[2])


def parse():
    parser = argparse.ArgumentParser(add_help=False,
                                     usage=__doc__[:__doc__.find("\n\n")].removeprefix("usage: "))
    for flag in ("--list", "--resume", "--lived"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--shard", type=shard, default=(1, 1))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--longest", type=float, default=60)
    options = parser.parse_args()
    for path in options.only:
        if not files([path]):
            parser.error(f"--only {path}: expected a C file or folder of src/ that is mutated")
    return options


# ---- results ----

def saved():
    """The number of mutants of each folder, and the last result of each mutant by its id."""
    if not RESULTS.exists():
        return {}, {}
    data = json.loads(RESULTS.read_text())
    return data["mutants"], {row["id"]: row for row in data["results"]}


def save(made, new):
    """Adds results. Reads the file again: two shards may run at the same time. `made` has the
    mutants of each file that was read: results of others in it are of code that is gone."""
    count, results = saved()
    results |= {row["id"]: row for row in new}
    for name, found in made.items():
        short = name.removeprefix("src/") + ":"
        known = {mutant.id for mutant in found}
        results = {key: row for key, row in results.items()
                   if not key.startswith(short) or key in known}
        count[short.rstrip(":")] = len(known)
    count = {name: count[name] for name in sorted(count) if (ROOT / "src" / name).exists()}
    results = {key: results[key] for key in sorted(results) if key.split(":")[0] in count}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text('{"mutants": {\n'
                       + ",\n".join(f"  {json.dumps(name)}: {count[name]}" for name in count)
                       + '\n}, "results": [\n'
                       + ",\n".join("  " + json.dumps(row) for row in results.values()) + "\n]}\n")


def equivalents():
    return {row["id"]: row["reason"] for row in json.loads(EQUIVALENTS.read_text())}


def commit():
    head = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, text=True,
                          capture_output=True).stdout.strip()
    clean = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src"], cwd=ROOT)
    return head + ("+" if clean.returncode else "")


# ---- choosing ----

def files(only):
    names = [name for name in tracked() if suites.mutated(name)]
    paths = [pathlib.PurePosixPath(path.rstrip("/")) for path in only]
    return [name for name in names
            if not paths or any(pathlib.PurePosixPath(name).is_relative_to(p) for p in paths)]


def in_order(made, seed):
    """All mutants; their order depends on the seed and on each alone, not on what else there is."""
    return sorted((mutant for found in made.values() for mutant in found),
                  key=lambda mutant: hashlib.sha256(f"{seed} {mutant.id}".encode()).digest())


# ---- judging ----

class Judge:
    def __init__(self, workshop, results, longest):
        self.workshop = workshop
        self.longest = longest
        self.original = {}  # the digest of a file's objects, unbroken
        self.kills = {}     # (file, test): how many mutants it killed
        for row in results.values():
            self.count(row)

    def count(self, row):
        if row["result"] == "killed":
            key = (row["id"].split(":")[0], row["by"].partition(" (")[0])
            self.kills[key] = self.kills.get(key, 0) + 1

    def order(self, mutant):
        """The tests that judge a mutant: those first that are quick for what they find."""
        short = mutant.file.removeprefix("src/")
        tests = (test for test in self.workshop.tests if suites.judges(mutant.file, test)
                 and self.workshop.seconds(test) <= self.longest)
        return sorted(tests,
                      key=lambda test: self.workshop.seconds(test)
                      / (1 + self.kills.get((short, test), 0)))

    def batches(self, tests):
        """Parts of the list that are built together: most mutants die in the first."""
        slow = next((i for i, test in enumerate(tests) if not test.startswith("unit/")), len(tests))
        cuts = sorted({0, min(3, len(tests)), slow, len(tests)})
        return [tests[first:last] for first, last in zip(cuts, cuts[1:])]

    def result(self, mutant):
        """The result of a mutant, as it is written to the file."""
        row = {"id": mutant.id, "result": "lived", "commit": commit(),
               "date": datetime.date.today().isoformat()}
        if mutant.file not in self.original:
            self.original[mutant.file] = self.workshop.code(mutant.file)
        try:
            self.workshop.write(mutant)
            code = self.workshop.code(mutant.file)
            if code is None:
                return row | {"result": "not compiled"}
            if code == self.original[mutant.file]:
                return row | {"result": "same code"}
            by = self.killer(mutant)
        finally:
            self.workshop.restore(mutant.file)
        row = row | ({"result": "killed", "by": by} if by else
                     {"change": mutant.change(), "longest": self.longest})
        self.count(row)
        return row

    def usable(self, test):
        return self.workshop.sound(test) and self.workshop.seconds(test) <= self.longest

    def killer(self, mutant):
        """The test that notices the mutant, or None."""
        for batch in self.batches(self.order(mutant)):
            if not all(self.workshop.is_measured(test) for test in batch):
                self.workshop.restore(mutant.file)
            batch = [test for test in batch if self.usable(test)]
            self.workshop.write(mutant)
            if not self.workshop.make(batch):
                return "the build"
            for test in batch:
                ends, _ = self.workshop.run(test, self.workshop.limit(test))
                if ends not in ("passed", "skipped"):
                    return test + (f" ({ends})" if ends != "failed" else "")
        return None


# ---- the command ----

def print_list(chosen, results, accepted):
    for mutant in chosen:
        last = "equivalent" if mutant.id in accepted else \
            results.get(mutant.id, {"result": "never run"})["result"]
        print(f"{mutant.file}:{mutant.line}: {mutant.id.split(':', 1)[1]}: {mutant.change()}"
              f" [{last}]")


def run(options, made, chosen, workshop):
    _, results = saved()
    print(f"{len(chosen)} mutants", flush=True)
    judge = Judge(workshop, results, options.longest)
    end = time.monotonic() + 60 * options.minutes
    count = {}
    for mutant in chosen:
        if time.monotonic() > end:
            break
        begun = time.monotonic()
        row = judge.result(mutant)
        save(made, [row])
        count[row["result"]] = count.get(row["result"], 0) + 1
        print(f"{row['result']:12} {time.monotonic() - begun:5.1f} s  {mutant.file}:{mutant.line} "
              f"{mutant.id.split(':', 1)[1]}"
              + (f" by {row['by']}" if "by" in row else f": {mutant.change()}"), flush=True)
    subprocess.run(["scripts/docs"], cwd=ROOT)
    print(", ".join(f"{count[result]} {result}" for result in sorted(count)))


def main():
    options = parse()
    workshop = Workshop("-".join(map(str, options.shard)))
    workshop.open()
    made = {name: [mutant for mutant in
                   mutants.of_file(workshop.tree, name, workshop.arguments[name])
                   if not suites.of_a_check(mutant.id)]
            for name in files(options.only)}
    _, results = saved()
    accepted = equivalents()
    chosen = in_order(made, options.seed)
    if options.lived:
        chosen = [mutant for mutant in chosen
                  if results.get(mutant.id, {}).get("result") == "lived"]
    if options.list:
        print_list(chosen, results, accepted)
        return 0
    chosen = [mutant for mutant in chosen if mutant.id not in accepted
              and not (options.resume and mutant.id in results)]
    first, step = options.shard
    run(options, made, chosen[first - 1::step], workshop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
