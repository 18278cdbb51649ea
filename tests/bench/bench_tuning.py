#!/usr/bin/env python3
"""A step that spills, with other values of the constants of live migration.

Each constant of src/migrate/tuning.def whose row there is TUNING is changed to a half and to the
double, and spillway is compiled anew. Figures are the step by simulated time relative to the same
step with all constants as they are: the median of several pairs of runs. `as it is` compares runs
of one object, so it shows what chance does.

ONLY chooses constants, separated by commas.
"""
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import bench
import bench_spill
import plans

SOURCE = bench.HERE.parents[1]
VARIANT = SOURCE / "build-tuning"
ROW = re.compile(r'SPW_TUNING\((\w+), ([^,]+), "[^"]*", (\w+),')


class Cell:
    """A workload on a device of a share of its peak, and how often it is run."""

    def __init__(self, name, workload, spilled, runs, overlap="safe"):
        self.name, self.workload, self.runs, self.overlap = name, workload, runs, overlap
        self.memory = plans.live_peak(workload.plan) * (100 - spilled) // 100

    def step(self, root):
        """The nanoseconds of a step with the build in a folder."""
        bench.OBJECT, bench.COMMAND = root / "libspillway.so", root / "spillway"
        step = self.workload.tier(self.memory, self.overlap)
        return None if step is None else step.ns


def cells(folder):
    resnet, pangu, s_1 = (bench_spill.of_trace(name, folder)
                          for name in ("resnet50", "pangu_2.6B", "S_1"))
    shapes, evaluation = bench_spill.of_shapes(folder), bench_spill.of_evaluation(folder)
    return [Cell("resnet50_5", resnet, 5, 9), Cell("resnet50_20", resnet, 20, 9),
            Cell("pangu_10", pangu, 10, 3), Cell("pangu_50", pangu, 50, 1),
            Cell("S_1_50", s_1, 50, 1), Cell("shapes_10", shapes, 10, 5),
            Cell("evaluation_20", evaluation, 20, 5),
            Cell("resnet50_10_guarded", resnet, 10, 9, "guarded")]


# ---- other values of constants ----

def constants():
    """{name: value} of those that this benchmark decides."""
    text = (SOURCE / "src/migrate/tuning.def").read_text()
    return {name: eval(value)  # pylint: disable=eval-used
            for name, value, row in ROW.findall(text) if row == "TUNING"}


def write_table(name, value):
    """tuning.def with another value, where the variant's compiler finds it first."""
    text = (SOURCE / "src/migrate/tuning.def").read_text()
    path = VARIANT / "override/migrate/tuning.def"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(re.sub(rf"(SPW_TUNING\({name}), [^,]+,", rf"\1, {value},", text))


def build(name, value):
    """The variant's folder, with the programs of the build that is measured."""
    write_table(name, value)
    if not (VARIANT / "build.ninja").exists():
        subprocess.run(["meson", "setup", VARIANT, SOURCE, "--buildtype=release",
                        f"-Dc_args=-iquote {VARIANT}/override"], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", VARIANT, "libspillway.so"], check=True,
                   stdout=subprocess.DEVNULL)
    for part in ("spillway", "sim"):
        if not (VARIANT / part).exists():
            subprocess.run(["ninja", "-C", VARIANT], check=True, stdout=subprocess.DEVNULL)
    return VARIANT


# ---- the table ----

def compare(cell, root):
    """A step with the variant, relative to one with the build: the median of pairs of runs."""
    ratios = []
    for _ in range(cell.runs):
        here, there = cell.step(bench.ROOT), cell.step(root)
        if here is None or there is None:
            return None
        ratios.append(there / here)
    return statistics.median(ratios)


def print_row(table, chosen, name, value, other, root):
    figures = {cell.name: compare(cell, root) for cell in chosen}
    known = [figure for figure in figures.values() if figure is not None] or [math.nan]
    table.row(constant=name, value=value, other=other, **figures, least=min(known),
              most=max(known), mean=statistics.geometric_mean(known))


def main():
    if not (bench.PROGRAMS / "play").exists():
        sys.exit("built without benchmarks")
    values = constants()
    only = os.environ["ONLY"].split(",") if "ONLY" in os.environ else values
    if unknown := set(only) - set(values):
        sys.exit(f"ONLY={min(unknown)}: expected constants whose row in tuning.def is TUNING")
    chosen = {name: values[name] for name in only}
    with tempfile.TemporaryDirectory() as folder:
        measured = cells(folder)
        table = bench.Table(constant=-22, value=8, other=8,
                            **{cell.name: 13 for cell in measured}, least=6, most=6, mean=6)
        print_row(table, measured, "as it is", None, None, bench.ROOT)
        for name, value in chosen.items():
            for other in (value // 2, value * 2):
                print_row(table, measured, name, value, other, build(name, other))


if __name__ == "__main__":
    main()
