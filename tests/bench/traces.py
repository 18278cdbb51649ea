"""The traces of tests/traces: their format is described there."""
import csv
import functools
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "traces"
NAMES = ["pangu_2.6B", "resnet50", "S_1"]
UNIT = 512


def path(name):
    return FOLDER / f"{name}.csv"


@functools.lru_cache(maxsize=None)
def read(file):
    """(row, bytes) of each allocation and (row, 0) of each free, in the order of replay."""
    events = []
    with open(file, newline="") as text:
        for row, line in enumerate(csv.DictReader(text)):
            events.append((int(line["lower"]), 1, row, int(line["size"])))
            events.append((int(line["upper"]), 0, row, 0))
    events.sort(key=lambda event: event[:3])
    return [(row, size) for _, _, row, size in events]


def live_peak(file):
    """The highest sum of live buffers, each rounded up to a unit."""
    live = peak = 0
    sizes = {}
    for row, size in read(file):
        if size:
            sizes[row] = -(-size // UNIT) * UNIT
            live += sizes[row]
            peak = max(peak, live)
        else:
            live -= sizes.pop(row)
    return peak
