#!/usr/bin/env python3
"""The cost of an allocate/free pair that finds its memory ready, in nanoseconds.

Beside so many live blocks of the traces' sizes. `pair`: a block is freed right after it was
allocated. `random`: a random live block is freed and another one allocated, so that every record is
cold. Doors: the driver's calls (cuMemAllocAsync, and cuMemAlloc, which asks the driver what has
completed), the runtime's, on the simulated GPU, whose own time is in what calls it; beside them the
C library's malloc and mimalloc with sizes divided by 1024, and torch.empty in Python. `together`:
time of a pair when all threads are at it at once. Contestants take turns; each figure is the median
of the rounds. Call-site capture is on in the rows that name it, and in the last two. The target of
`torch.empty` is the time with PyTorch's own cache. The last two rows show the cost of a recording,
which has two events for each pair.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile

import bench
import traces

ROUNDS = 3
LIVE = [10, 1000, 10000, 100000]
THREADS = [1, 16]
BOUND_NS, BOUND_RATIO, RECORD_BOUND_NS = 100, 1.3, 40
MIMALLOC = "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2"


def environment(preload):
    env = bench.clean_environment(SIM_MEMORY="8TiB", SITES="off", SUMMARY="off", SPILL="off")
    env["LD_LIBRARY_PATH"] = str(bench.SIM)
    if preload:
        env["LD_PRELOAD"] = str(preload)
    return env


def contestants():
    """The contestants: name, interface and preloaded library."""
    yield "driver async", "async", bench.OBJECT
    yield "driver sync", "sync", bench.OBJECT
    yield "runtime async", "runtime", bench.OBJECT
    yield "malloc", "malloc", None
    if pathlib.Path(MIMALLOC).exists():
        yield "mimalloc", "malloc", MIMALLOC


def numbers(command, env):
    done = subprocess.run([str(word) for word in command], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True)
    return {name: float(number) for name, number in
            (line.rsplit(" ", 1) for line in done.stdout.splitlines() if " " in line)}


def rounds(commands):
    """Runs {who: (command, environment)} in turns; {who: medians of its numbers}."""
    results = {who: [] for who in commands}
    for _ in range(ROUNDS):
        for who, (command, env) in commands.items():
            results[who].append(numbers(command, env))
    return {who: {name: statistics.median(run[name] for run in runs) for name in runs[0]}
            for who, runs in results.items()}


def verdict(who, live, threads, median, first):
    if who != "driver async" or threads != 1:
        return None
    good = median <= BOUND_NS and (live < LIVE[-1] or median <= BOUND_RATIO * first)
    return "ok" if good else "MISSED"


def native(table):
    files = [traces.path(name) for name in traces.NAMES]
    first = None
    for threads in THREADS:
        for live in LIVE:
            results = rounds({
                who: ((bench.PROGRAMS / "hot", door, live, threads, *files), environment(preload))
                for who, door, preload in contestants()})
            for who, result in results.items():
                first = first or result["pair median"]
                table.row(who=who, threads=threads, live=live,
                          **{name.replace(" ", "_"): value for name, value in result.items()},
                          verdict=verdict(who, live, threads, result["pair median"], first))


CAPTURED = """
import ctypes, sys
library = ctypes.PyDLL(sys.argv[1])
library.pairs.restype = ctypes.c_double
def below(depth):
    return below(depth - 1) if depth > 1 else library.pairs(int(sys.argv[2]))
print("pair median", below(7))
"""
CAPTURED_LIVE = 1000


def captured(table):
    """The door where nothing else is in the way, without capture and with it; and the bounds."""
    files = [traces.path(name) for name in traces.NAMES]
    plain = environment(bench.OBJECT)
    default = {**plain, "SPILLWAY_SITES": "both"}
    hot = (bench.PROGRAMS / "hot", "async", CAPTURED_LIVE, 1, *files)
    under = (sys.executable, "-c", CAPTURED, bench.PROGRAMS / "libpairs.so", CAPTURED_LIVE)
    bounds = {"capture off": BOUND_NS, "capture, native": 150, "capture, under Python": 300}
    results = rounds(dict(zip(bounds, ((hot, plain), (hot, default), (under, default)))))
    for who, result in results.items():
        table.row(who=who, threads=1, live=CAPTURED_LIVE, pair_median=result["pair median"],
                  verdict="ok" if result["pair median"] <= bounds[who] else "MISSED")


def recorded(table):
    """What a recording adds to a pair, which is two events, with call sites on."""
    files = [traces.path(name) for name in traces.NAMES]
    default = {**environment(bench.OBJECT), "SPILLWAY_SITES": "both"}
    hot = (bench.PROGRAMS / "hot", "async", CAPTURED_LIVE, 1, *files)
    with tempfile.TemporaryDirectory() as folder:
        record = {**default, "SPILLWAY_RECORD": f"{folder}/%p", "SPILLWAY_RECORD_SIZE": "1GiB"}
        results = rounds({"not recorded": (hot, default), "recorded": (hot, record)})
    before = results["not recorded"]["pair median"]
    for who, result in results.items():
        added = result["pair median"] - before
        table.row(who=who, threads=1, live=CAPTURED_LIVE, pair_median=result["pair median"],
                  verdict="ok" if added <= 2 * RECORD_BOUND_NS else "MISSED")


def python(table, interpreter):
    command = [bench.COMMAND, "sim", "--memory", "64GiB"]
    env = bench.clean_environment(SITES="off", SUMMARY="off", SPILL="off")
    script = [interpreter, bench.HERE / "torch_empty.py"]
    for live in LIVE[:2]:
        results = rounds({
            "torch.empty, its cache": ([*command, "--no-pool", "--", *script, live], env),
            "torch.empty, tensor mode": ([*command, "--", *script, live], env),
            "torch.empty, call sites on": ([*command, "--", *script, live],
                                           {**env, "SPILLWAY_SITES": "both"})})
        cache = results["torch.empty, its cache"]["pair median"]
        for who, result in results.items():
            table.row(who=who, threads=1, live=live, pair_median=result["pair median"],
                      pair_p99=result["pair p99"],
                      verdict="ok" if result["pair median"] <= cache else "MISSED")


def main():
    table = bench.Table(who=-24, threads=7, live=7, pair_calls=10, pair_median=11, pair_p99=9,
                        pair_together=13, random_calls=12, random_median=13, random_p99=10,
                        random_together=15, verdict=-7)
    native(table)
    interpreter = bench.find_torch()
    if interpreter is not None:
        python(table, interpreter)
    captured(table)
    recorded(table)


if __name__ == "__main__":
    main()
