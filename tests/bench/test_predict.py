#!/usr/bin/env python3
"""The parts of the benchmark `predict` on tiny cases that were worked out by hand.

    test_predict.py BUILD
"""
import json
import re
import sys
import unittest

import accesses
import bench
import bench_predict

UNIT = 512
# Four blocks of one unit, on three; each call uses the fourth. The third takes the place of the
# second, whose next use is the farthest.
FOUR = """a 4 512 0
a 1 512 0
u 4 1
a 2 512 0
u 4 2
a 3 512 0
u 4 3
u 4 1
f 1
u 4 3
f 3
u 4 2
"""


def cycle(times):
    """Three blocks that are used in turn, each with the fourth."""
    return "".join(f"l {block} 512 {block}\n" for block in (1, 2, 3, 4)) + (
        "s\nu 4 1\nu 4 2\nu 4 3\n" * times)


def moved(trace, *arguments):
    figures = bench_predict.replay(bench_predict.REPLAY, trace, *arguments)
    return {name: bytes_ // UNIT for name, bytes_ in figures.items()}


@unittest.skipUnless(bench_predict.REPLAY.exists(), "built without benchmarks")
class Replay(unittest.TestCase):
    def test_belady(self):
        """The second block comes back. The least recently used is the first, and then the second:
        both come back."""
        figures = moved(FOUR, 75)
        self.assertEqual((figures["belady, all"], figures["lru, all"]), (1, 2))

    def test_all_fits(self):
        self.assertEqual(set(moved(FOUR, 100).values()), {0})

    def test_repetition(self):
        """There are 92 calls in the second half. The least recently used block is always the one
        that is used next, so each use brings it in. Belady's choice does so at every other use, and
        both predictions know the cycle by then."""
        figures = moved(cycle(60), 75)
        self.assertEqual(figures["lru, late"], 92)
        self.assertEqual(figures["belady, late"], 46)
        self.assertEqual(figures["last period, late"], 46)
        self.assertEqual(figures["spillway, late"], 46)

    def test_marks(self):
        """With marks the second cycle is known already."""
        few = [moved(cycle(4), 75, *words)["spillway, all"] for words in ((), ("marked",))]
        self.assertLess(few[1], few[0])

    def test_too_large(self):
        """A call that uses more than there is room for uses the rest over the link."""
        self.assertEqual(moved("a 1 512 0\na 2 512 0\nu 1 2\n", 50)["lru, all"], 1)

    def test_constant(self):
        """A replay program with another constant answers otherwise: no match is as long."""
        self.assertIn("MATCH_EVENTS", bench_predict.constants())
        self.assertEqual(bench_predict.others(64), [0, 16, 32, 128, 256])


class Trace(unittest.TestCase):
    def test_lines(self):
        events = [("live", 7, 512, 3), ("alloc", 9, 1024, 4), ("use", 7), ("use", 9), ("call",),
                  ("call",), ("step",), ("free", 5), ("free", 7)]
        self.assertEqual(list(accesses.lines_of(events)),
                         ["l 1 512 3", "a 2 1024 4", "u 1 2", "s", "f 1"])

    def test_recorded(self):
        """Every program is there, and every block is known where it is used."""
        for name in accesses.names():
            known = set()
            for line in accesses.read(name).splitlines():
                kind, *words = line.split()
                known |= {words[0]} if kind in "la" else set()
                named = {"s": [], "u": words}.get(kind, words[:1])
                self.assertTrue(known.issuperset(named), f"{name}: {line}")


class Tuning(unittest.TestCase):
    """The column `row` of tuning.def, beside the published results."""

    WORSE = 1.002

    def setUp(self):
        results = json.loads((bench.HERE / "results/predict.json").read_text())
        whole, *self.rows = results["tables"][1]["rows"]
        self.figures = [float(cell) for cell in whole[2:]]

    def is_worse(self, row):
        return any(float(cell) > self.WORSE * figure
                   for cell, figure in zip(row[2:], self.figures))

    def test_rows(self):
        """A constant names the benchmark exactly if one of its rows is worse than its value."""
        text = (bench_predict.SOURCE / "src/migrate/tuning.def").read_text()
        named = set(re.findall(r'SPW_TUNING\((\w+), [^,]+, "[^"]*", PREDICT,', text))
        self.assertEqual(named, {row[0].split(" = ")[0] for row in self.rows if self.is_worse(row)})

    def test_values(self):
        """The results are those of the values in the table."""
        self.assertEqual({row[0] for row in self.rows},
                         {f"{name} = {value}"
                          for name, value in bench_predict.constants().items()})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
