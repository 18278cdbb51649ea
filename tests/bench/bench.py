"""What the benchmarks share: where things are, how they are timed, how results are printed."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else pathlib.Path("build")
PROGRAMS = ROOT / "tests/bench"


def environment(preload, sim=False):
    """A small one, of the same size bare and under spillway: getenv's time depends on it."""
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env["SPILLWAY_SUMMARY"] = "off"
    env["LD_PRELOAD" if preload else "NO_PRELOAD"] = str(ROOT / "libspillway.so")
    if sim:
        env["LD_LIBRARY_PATH"] = str(ROOT / "sim")
    return env


def run(command, preload, sim=False):
    """A program's output as {name: number}; it prints "name number" lines."""
    done = subprocess.run([str(word) for word in command], env=environment(preload, sim),
                          stdout=subprocess.PIPE, text=True, check=True)
    return {name: float(number) for name, number in
            (line.rsplit(" ", 1) for line in done.stdout.splitlines())}


def compare(command, repeats, sim=False):
    """The best bare and the best under spillway, in turns so that both see the same machine."""
    bare, pool = [], []
    for _ in range(repeats):
        bare.append(run(command, False, sim))
        pool.append(run(command, True, sim))

    def best(results):
        return {name: min(result[name] for result in results) for name in results[0]}
    return best(bare), best(pool)


def report(rows):
    """Rows of (what, value, unit, bound or None): a table, or JSON lines with --json."""
    for what, value, unit, bound in rows:
        if "--json" in sys.argv:
            print(json.dumps({"what": what, "value": round(value, 3), "unit": unit,
                              "bound": bound}))
        else:
            verdict = "" if bound is None else f"   (bound {bound:g} {unit}" + (
                ")" if value <= bound else ", EXCEEDED)")
            print(f"{what:<52} {value:10.2f} {unit}{verdict}")
