"""The files whose functions run when an allocation finds its memory ready, and when the block is
freed: callgrind counts the calls of the benchmark `hot`, with blocks of 512 bytes."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import tree
from house import source

ALLOCATE, FREE = "cuMemAllocAsync", "cuMemFreeAsync"
# A function is on the way if this part of the calls runs through it; the rest is for tables that
# grow and queues that are emptied.
SHARE = 0.9
TRACE = "id,lower,upper,size\n0,0,1,512\n"
# Beside these everything is as it is by default, call sites included.
SETTINGS = {"SPILLWAY_SUMMARY": "off", "SPILLWAY_SIM_MEMORY": "64GiB"}
KEYS = ("files_hit", "files_pair")


def figures(build):
    reason = "--calls BUILD measures it" if build is None else missing(build)
    text, reason = (None, reason) if reason else run(build)
    if reason:
        yield from ((key, None, reason) for key in KEYS)
        return
    edges = read(text)
    ways = [way(build, edges, name) for name in (ALLOCATE, FREE)]
    for key, functions in zip(KEYS, (ways[0], ways[0] | ways[1])):
        files = ours(build, functions)
        count = sum(inside(build, path) is not None for path, _ in functions)
        names = ", ".join(sorted(str(path.relative_to("src")) for path in files))
        yield (key, len(files),
               f"{len(set(map(source.module, files)))} modules, {count} functions: {names}")


def missing(build):
    """Why the calls cannot be counted with this build; None if they can."""
    options = build / "meson-info/intro-buildoptions.json"
    if shutil.which("valgrind") is None:
        return "no valgrind (scripts/setup --full)"
    if not options.is_file() or not (build / "tests/bench/hot").is_file():
        return f"{build} has no tests/bench/hot"
    values = {option["name"]: option["value"] for option in json.loads(options.read_text())}
    if values["optimization"] != "0" or not values["debug"]:
        return f"{build} is not a debug build (meson setup --buildtype=debug)"
    return None if values["b_sanitize"] == "none" else f"{build} is sanitized"


def run(build):
    """(the text that callgrind writes, why there is none)"""
    with tempfile.TemporaryDirectory() as folder:
        out, trace = pathlib.Path(folder, "calls"), pathlib.Path(folder, "trace.csv")
        trace.write_text(TRACE)
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("SPILLWAY")}
        env.update(SETTINGS, LD_PRELOAD=str((build / "libspillway.so").resolve()),
                   LD_LIBRARY_PATH=str((build / "sim").resolve()))
        done = subprocess.run(
            ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}",
             "--compress-strings=no", "--compress-pos=no",
             build.resolve() / "tests/bench/hot", "async", "10", "1", trace],
            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0 or not out.is_file():
            return None, f"hot under valgrind: {done.stderr.strip()[-200:]}"
        return out.read_text(errors="replace"), None


def read(text):
    """{(file, function): {(file, function) that it calls: how often}}"""
    edges = collections.defaultdict(collections.Counter)
    path, here, other, callee = "", None, None, None
    for key, value in re.findall(r"^(fl|fi|fe|fn|cfi|cfl|cfn|calls)=(.*)$", text, re.MULTILINE):
        if key == "fl":
            path = value
        elif key == "fn":
            here, other = (path, value), None
        elif key in ("cfi", "cfl"):
            other = value
        elif key == "cfn":
            callee, other = (other or path, value), None
        elif key == "calls":
            edges[here][callee] += int(value.split()[0])
    return edges


def way(build, edges, name):
    """The functions that SHARE of the calls of an entry run through."""
    entries = {callee for callees in edges.values() for callee in callees
               if callee[1] == name and inside(build, callee[0])}
    calls = sum(callees[entry] for callees in edges.values() for entry in entries)
    found, counts, left = set(), collections.Counter(), list(entries)
    while left:
        here = left.pop()
        found.add(here)
        for callee, count in edges.get(here, {}).items():
            counts[callee] += count
            if counts[callee] >= SHARE * calls and callee not in found and callee not in left:
                left.append(callee)
    return found


def inside(build, path):
    """The path of a source of the object, also of a generated one; else None."""
    path = pathlib.Path(os.path.normpath(path))
    for top in (build.resolve(), tree.ROOT):
        if path.is_relative_to(top / "src") and "sim" not in path.relative_to(top).parts:
            return path.relative_to(top)
    return None


def ours(build, functions):
    return {inside(build, path) for path, _ in functions} - {None}
