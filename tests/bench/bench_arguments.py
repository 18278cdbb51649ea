#!/usr/bin/env python3
"""What spillway takes from kernels' arguments, beside what the kernels use.

Three tables:

launches    of the training scripts of tests/torch. `known`: all their addresses were known; the
            others count as using all memory. `stated`: kernels that state what they use, those of
            the simulated libraries. Of them `missed` have used a block that spillway did not find,
            and `false` is the share of the blocks found that they did not use.
operators   of PyTorch in the same runs, for PyTorch's own kernels, which state nothing: what an
            operator was given and returned, beside what was found in its launches. `missed`: some
            of it was not found. `false` blocks belong to something else.
hidden      programs whose kernels read addresses from memory (tests/spill/through.c). `missed` here
            counts launches that were taken for known.
"""
import pathlib
import sys
import tempfile

import access_log
import bench

sys.path.insert(0, str(bench.HERE.parent / "torch"))
import corpus  # pylint: disable=wrong-import-position

TARGET = 0.25  # percent, missed at most: what MSched reports for its method
HIDDEN = ("none", "kernel", "name", "copy", "once", "copied", "rows", "batch", "global", "pinned",
          "managed", "map")
HIDDEN_MEMORY = 64 * bench.MIB


def run(command, memory, **options):
    """The Reader of a run, or None when the program failed."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        log.touch()
        done = bench.simulate(command, memory, (), {"OPERATORS_LOG": str(log)}, SPILL="auto",
                              SIM_TIME="on", SIM_LOG=log, LOG=f"debug:{log}", **options)
        if not done.ran:
            print(done.stderr, file=sys.stderr)
            return None
        return access_log.Reader().read(log)


def share(part, whole):
    """In percent; None of nothing."""
    return 100 * part / whole if whole > 0 else None


class Counts:
    """The figures of a row; those of several runs can be added."""

    def __init__(self):
        self.launches = self.known = self.stated = self.missed = 0
        self.named_blocks = self.false_blocks = 0
        self.operators = self.operators_known = self.operators_missed = 0
        self.operator_blocks = self.operator_false = 0

    def add(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def take(self, reader):
        for launch in reader.launches:
            self.launches += 1
            self.known += launch.known
            if launch.stated and launch.known:
                self.stated += 1
                self.missed += bool(launch.used - launch.named)
                self.named_blocks += len(launch.named)
                self.false_blocks += len(launch.named - launch.used)
        for operator in reader.operators:
            if operator.launches > 0:
                self.take_operator(operator)
        return self

    def take_operator(self, operator):
        self.operators += 1
        if operator.known:
            self.operators_known += 1
            self.operators_missed += bool(operator.used - operator.named)
            self.operator_blocks += len(operator.named)
            self.operator_false += len(operator.named - operator.used - operator.own)

    @staticmethod
    def verdict(missed_pct):
        return "" if missed_pct is None else "ok" if missed_pct <= TARGET else "MISSED"

    def print_launches(self, table, name):
        missed = share(self.missed, self.stated)
        table.row(table="launches", program=name, launches=self.launches,
                  known=share(self.known, self.launches), checked=self.stated,
                  missed=self.missed, missed_pct=missed,
                  false_pct=share(self.false_blocks, self.named_blocks),
                  verdict=self.verdict(missed))

    def print_operators(self, table, name):
        missed = share(self.operators_missed, self.operators_known)
        table.row(table="operators", program=name, launches=self.operators,
                  known=share(self.operators_known, self.operators), checked=self.operators_known,
                  missed=self.operators_missed, missed_pct=missed,
                  false_pct=share(self.operator_false, self.operator_blocks),
                  verdict=self.verdict(missed))


def print_torch(table, interpreter):
    rows, total = [], Counts()
    for name, row in corpus.SCRIPTS.items():
        if row.processes > 1:
            continue
        script, *arguments = row.command
        reader = run([interpreter, bench.HERE / "torch_operators.py",
                      bench.HERE.parent / "torch" / script, *arguments], bench.LARGE)
        if reader is None:
            table.row(table="launches", program=name, verdict="MISSED: failed")
            continue
        rows.append((name, Counts().take(reader)))
        rows[-1][1].print_launches(table, name)
        total.add(rows[-1][1])
    total.print_launches(table, "all")
    for name, counts in [*rows, ("all", total)]:
        counts.print_operators(table, name)


def print_hidden(table):
    for name in HIDDEN:
        reader = run([bench.ROOT / "tests/spill/through", name], HIDDEN_MEMORY, MOVE_WAIT=5000)
        launches = [launch for launch in reader.launches if launch.used] if reader else []
        missed = sum(launch.known and bool(launch.used - launch.named) for launch in launches)
        table.row(table="hidden", program=f"through {name}", launches=len(launches),
                  known=share(sum(launch.known for launch in launches), len(launches)),
                  missed=missed, missed_pct=share(missed, len(launches)),
                  verdict="" if reader else "MISSED: failed")


def main():
    interpreter = bench.find_torch()
    table = bench.Table(table=-9, program=-22, launches=8, known=7, checked=8, missed=6,
                        missed_pct=10, false_pct=9, verdict=-7)
    print_hidden(table)
    if interpreter:
        print_torch(table, interpreter)


if __name__ == "__main__":
    main()
