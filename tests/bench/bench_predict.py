#!/usr/bin/env python3
"""What predictions are worth: the bytes that must be brought in when they choose what to evict.

Recorded programs (accesses.py) are replayed with demand paging (predict/replay.c) on devices that
hold 90 and 80 % of what is in use at the fullest moment. Figures are bytes brought in, relative to
Belady's choice, which knows the future: `all` of the program, and `late`, its second half.

answers    lru: nothing is predicted; last period: what followed the last time comes again;
           spillway: src/migrate/learn/predictor.c; marked: the same, with the marks of steps. The
           last row has geometric means.
constants  the mean of `spillway` and `marked` over all programs and devices with another value of
           one constant of tuning.def; the first row has all values as they are.
"""
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import accesses
import bench

SOURCE = bench.HERE.parents[1]
SHARES = (90, 80)  # percent
REPLAY = bench.PROGRAMS / "replay"
ANSWERS = ("lru", "last period", "spillway")
FACTORS = (0, 1 / 4, 1 / 2, 2, 4)


def replay(program, trace, *arguments):
    """{"NAME, all" or "NAME, late": bytes}"""
    done = subprocess.run([str(word) for word in (program, *arguments)], input=trace,
                          stdout=subprocess.PIPE, text=True, check=True)
    return {name: int(count) for name, count in
            (line.rsplit(" ", 1) for line in done.stdout.splitlines())}


def ratio(figures, name, part):
    """Relative to Belady's choice; where that moves nothing, 1 if neither does the other."""
    whole, of = figures[f"{name}, {part}"], figures[f"belady, {part}"]
    return whole / of if of > 0 else 1.0 if whole == 0 else math.inf


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Runs:
    """The figures of a replay program on all traces and devices."""

    def __init__(self, program, traces):
        self.rows = []  # (name of the trace, percent, figures, figures of the marked run)
        for name, trace in traces.items():
            for share in SHARES:
                self.rows.append((name, share, replay(program, trace, share),
                                  replay(program, trace, share, "marked")))

    def mean(self, name, part, marked=False):
        return mean([ratio(row[2 + marked], name, part) for row in self.rows])


def print_answers(table, runs):
    for name, share, figures, marked in runs.rows:
        row = {f"{who.replace(' ', '_')}_{part}": ratio(figures, who, part)
               for part in ("all", "late") for who in ANSWERS}
        table.row(table="answers", what=name, value=f"{share} %",
                  belady_MiB=figures["belady, all"] / bench.MIB,
                  marked_all=ratio(marked, "spillway", "all"),
                  marked_late=ratio(marked, "spillway", "late"), **row)
    row = {f"{who.replace(' ', '_')}_{part}": runs.mean(who, part)
           for part in ("all", "late") for who in ANSWERS}
    table.row(table="answers", what="mean", marked_all=runs.mean("spillway", "all", True),
              marked_late=runs.mean("spillway", "late", True), **row)


# ---- other values of constants ----

ROW = re.compile(r'SPW_TUNING\((\w+), ([^,]+), ')


def constants():
    """{name: value} of those that decide what predictor.c answers."""
    found, section = {}, ""
    for line in (SOURCE / "src/migrate/tuning.def").read_text().splitlines():
        if line.startswith("/* ----"):
            section = line
        match = ROW.match(line)
        if match and "predictor.c" in section:
            found[match.group(1)] = eval(match.group(2))  # pylint: disable=eval-used
    return found


def others(value):
    """Other values, in order."""
    return sorted(int(value * factor) for factor in FACTORS)


def build(folder, name, value):
    """The replay program with another value of one constant."""
    folder = pathlib.Path(folder)
    (folder / "migrate").mkdir(exist_ok=True)
    text = (SOURCE / "src/migrate/tuning.def").read_text()
    changed = re.sub(rf"(SPW_TUNING\({name}), [^,]+,", rf"\1, {value},", text)
    (folder / "migrate/tuning.def").write_text(changed)
    program = folder / "replay"
    sources = [*(bench.HERE / "predict").glob("*.c"), SOURCE / "src/migrate/learn/predictor.c"]
    subprocess.run(["cc", "-O2", "-std=gnu17", "-I", folder, "-I", SOURCE / "src", "-I", bench.HERE,
                    *sources, "-o", program], check=True)
    return program


def print_constants(table, traces, runs):
    def row(what, value, figures):
        table.row(table="constants", what=what, value=value,
                  **{f"{name}_{part}": figures.mean("spillway", part, name == "marked")
                     for name in ("spillway", "marked") for part in ("all", "late")})
    row("as it is", "", runs)
    with tempfile.TemporaryDirectory() as folder:
        for name, value in constants().items():
            for other in others(value):
                row(f"{name} = {value}", other, Runs(build(folder, name, other), traces))


def main():
    if not REPLAY.exists():
        sys.exit("built without benchmarks")
    traces = {name: accesses.read(name) for name in accesses.names()}
    table = bench.Table(table=-9, what=-30, value=7, belady_MiB=10, lru_all=8, last_period_all=15,
                        spillway_all=12, marked_all=10, lru_late=8, last_period_late=16,
                        spillway_late=13, marked_late=11)
    runs = Runs(REPLAY, traces)
    print_answers(table, runs)
    print_constants(table, traces, runs)


if __name__ == "__main__":
    main()
