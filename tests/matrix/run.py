#!/usr/bin/env python3
"""usage: scripts/test --full [--shard K/N] [--resume] [--list]

Runs the long test matrix: parts of less than an hour each (tests/matrix/parts.py), every one after
the other. What each found is written to tests/matrix/results/last.json, with the commit; the page
docs/dev/results/test-matrix.md is made from it. The last line counts the tests: N passed, N failed,
N skipped.

  --shard K/N  only the K-th of N shards: the parts K, K + N, K + 2 N, ...
  --resume     leaves out parts that passed on this tree (documents may have changed)
  --list       prints the parts with their last results, and runs nothing
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from parts import BUILDS, PARTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "packing"))
import aarch64  # noqa: E402

RESULTS = ROOT / "tests/matrix/results/last.json"
GOOD = ("OK", "EXPECTEDFAIL")
# Two tests start more threads than valgrind allows by default.
VALGRIND = ("valgrind --quiet --leak-check=full --error-exitcode=9 --max-threads=2000 "
            f"--suppressions={ROOT}/tests/valgrind.supp")
# A thread of PyTorch 2.15 can end its process while CPython before 3.14 is finalised, with spillway
# and without (docs/guide/pytorch.md). A test whose programs end so is run again.
ENDED_BY_PYTORCH = "terminate called without an active exception"
RUNS = 4
EMULATE = ROOT / "packing/emulate.sh"
# A sanitizer's finding must not look like the exit status that a test expects.
SANITIZERS = {"ASAN_OPTIONS": "abort_on_error=1",
              "UBSAN_OPTIONS": "abort_on_error=1:print_stacktrace=1"}


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True)


def changed_since(revision):
    """True if files of the tree, other than documents and the results, differ from a commit."""
    return git("diff", "--quiet", revision, "--", ".", ":!*.md", ":!docs",
               f":!{RESULTS.relative_to(ROOT)}").returncode != 0


def commit():
    """The commit of the tree; with a plus if files of it have changed."""
    return (git("rev-parse", "--short=10", "HEAD").stdout.strip()
            + ("+" if changed_since("HEAD") else ""))


def folder(part):
    if part.build == "aarch64":
        return aarch64.BUILD
    return ROOT / ("build" if part.build == "release" else f"build-full/{part.build}")


def build(part):
    """Brings the build folder of the part up to date."""
    if part.build == "release":
        subprocess.run(["scripts/build"], cwd=ROOT, check=True)
        return
    kind = BUILDS[part.build]
    if part.build == "aarch64":
        aarch64.build(kind.options)
        return
    if not (folder(part) / "build.ninja").exists():
        subprocess.run(["meson", "setup", folder(part), "-Dwerror=true", *kind.options], cwd=ROOT,
                       env=os.environ | {"CC": kind.compiler, "CXX": kind.compiler + "++"
                                         if kind.compiler == "clang" else "g++"},
                       stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["ninja", "-C", folder(part), "--quiet"], cwd=ROOT, check=True)


def chosen_tests(part):
    listed = json.loads(subprocess.run(["meson", "introspect", folder(part), "--tests"], text=True,
                                       capture_output=True, check=True).stdout)
    # The same name may be in two suites of which only one is marked long.
    return sorted({test["name"] for test in listed
                   if part.takes(test["name"], {suite.partition(":")[2]
                                                for suite in test["suite"]})})


def obstacle(part):
    """Why the part cannot run on this machine, or None."""
    if part.build == "aarch64" and not aarch64.is_there():
        return aarch64.why_not()
    if part.newest and not interpreter(part).exists():
        return "scripts/setup --torch-newest found no such CPython"
    if "torch" in part.suites and not part.newest:
        found = subprocess.run([sys.executable, ROOT / "tests/torch/wheel.py"], text=True,
                               capture_output=True)
        return found.stdout.strip() if found.returncode != 0 else None
    return None


def interpreter(part):
    return ROOT / f".venv-newest/{part.newest}/bin/python"


def run_tests(part, names):
    """Runs tests of the part. Returns what Meson wrote about each of them, by its full name."""
    number = PARTS.index(part) + 1
    command = ["meson", "test", "-C", folder(part), "--no-rebuild", "--print-errorlogs",
               f"--timeout-multiplier={part.timeout}", f"--logbase=matrix-{number}"]
    wrapper = VALGRIND if part.valgrind else str(EMULATE) if part.build == "aarch64" else None
    command += ["--wrapper", wrapper] if wrapper else []
    newest = {"SPILLWAY_TEST_TORCH": str(interpreter(part))} if part.newest else {}
    # Meson adds the name of a wrapper.
    log = folder(part) / (f"meson-logs/matrix-{number}"
                          + (f"-{pathlib.Path(wrapper.split()[0]).name}" if wrapper else "")
                          + ".json")
    log.unlink(missing_ok=True)
    subprocess.run([*command, *names], env=os.environ | SANITIZERS | newest)
    lines = log.read_text().splitlines() if log.exists() else []
    return {test["name"]: test for test in map(json.loads, lines)}


def failed(test):
    return test["result"] not in (*GOOD, "SKIP")


def ended_by_pytorch(test):
    return failed(test) and ENDED_BY_PYTORCH in test.get("stdout", "") + test.get("stderr", "")


def run(part):
    """The result of the part, as it is written to the file."""
    begun = time.monotonic()
    result = {"part": part.name, "commit": commit(),
              "date": datetime.date.today().isoformat(), "passed": 0, "failed": [], "skipped": 0}
    reason = obstacle(part)
    if reason:
        return result | {"minutes": 0, "note": "not run: " + reason}
    build(part)
    tests, names, again = {}, chosen_tests(part), set()
    for _ in range(RUNS if part.newest else 1):
        found = run_tests(part, names)
        tests |= found
        names = [name.rpartition(" / ")[2] for name, test in found.items()
                 if ended_by_pytorch(test)]
        if not names:
            break
        again |= set(names)
    for name, test in tests.items():
        result["passed"] += test["result"] in GOOD
        result["skipped"] += test["result"] == "SKIP"
        if failed(test):
            result["failed"].append(f"{name} ({test['result'].lower()})")
    if not tests:
        result["failed"].append("no test ran")
    if again:
        result["again"] = sorted(again)  # their programs had been ended by PyTorch
    return result | {"minutes": round((time.monotonic() - begun) / 60, 1)}


def saved():
    """The last result of each part, by its name."""
    if not RESULTS.exists():
        return {}
    return {result["part"]: result for result in json.loads(RESULTS.read_text())["parts"]}


def save(result):
    """Writes a result and the page. Reads the file again: two shards may run at the same time."""
    results = saved() | {result["part"]: result}
    known = [results[part.name] for part in PARTS if part.name in results]
    text = ",\n".join("  " + json.dumps(row) for row in known)
    RESULTS.write_text('{"parts": [\n' + text + "\n]}\n")
    subprocess.run(["scripts/docs"], cwd=ROOT)


def print_list():
    results = saved()
    for number, part in enumerate(PARTS, 1):
        last = results.get(part.name)
        print(f"{number:3} {part.name:36}",
              f"{last['commit']:11} {last['minutes']:6} min  {last['passed']} passed, "
              f"{len(last['failed'])} failed, {last['skipped']} skipped" if last else "never run")


def shard(text):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]) <= len(PARTS):
        raise argparse.ArgumentTypeError(f"{text}: expected K/N with K from 1 to N, and N at most "
                                         f"{len(PARTS)}")
    return int(match[1]), int(match[2])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("\n")[0].removeprefix("usage: "),
                                     add_help=False)
    parser.add_argument("--shard", type=shard, default=(1, 1))
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    try:
        done = saved()  # before the first part: a result that cannot be saved is an hour lost
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        parser.error(f"{RESULTS.relative_to(ROOT)} is broken: {error!r}")
    if options.list:
        print_list()
        return 0
    first, step = options.shard
    passed = failed = skipped = 0
    for part in PARTS[first - 1::step]:
        last = done.get(part.name) if options.resume else None
        if last and not last["failed"] and "note" not in last and not changed_since(last["commit"]):
            print(f"== {part.name}: passed at {last['commit']} ==", flush=True)
            continue
        print(f"\n== {part.name} ==", flush=True)
        result = run(part)
        save(result)
        passed += result["passed"]
        failed += len(result["failed"])
        skipped += result["skipped"]
        for name in result["failed"]:
            print(f"failed: {name}")
        if "note" in result:
            print(result["note"])
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
