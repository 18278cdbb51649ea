#!/usr/bin/env python3
"""How closely the simulated GPU predicts what others measured on real ones.

usage: scripts/bench fit [--json] [--again]

Runs of others are data in tests/fit/data/, with source and licence; tests/fit/train.py trains them
anew on the simulated GPU, without the pool and with the memory of their card less what the card
holds besides (tests/fit/cards.py). Results are kept in tests/fit/results/runs.json, so that the
benchmark goes on where it stopped; --again runs every row. tests/fit/evaluate.py compares. Half of
the rows, by a hash of their names, are for calibration.
"""
import json
import subprocess
import sys

import bench

sys.path.insert(0, str(bench.HERE.parent / "fit"))
import evaluate  # pylint: disable=wrong-import-position
import rows as data  # pylint: disable=wrong-import-position
from cards import CARDS  # pylint: disable=wrong-import-position

FOLDER = bench.HERE.parent / "fit"
PACKAGES = bench.ROOT / "fit-packages"
AT_ONCE = 24  # rows of one process; each begins with empty caches
AMPLE = 4  # times the card, to see a peak that does not fit
VARIED = [115, 125, 128, 122]  # lengths of four batches, for the upper bound of small ones


def fetch(interpreter, library):
    """Puts a library of the version of a source beside the build."""
    wanted = FOLDER / "libraries" / f"{library}.txt"
    mark = PACKAGES / library / "installed.txt"
    if mark.exists() and mark.read_text() == wanted.read_text():
        return
    subprocess.run([interpreter, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target",
                    mark.parent, "-r", wanted], check=True)
    mark.write_text(wanted.read_text())


def train(interpreter, part, memory):
    """Runs rows of one card and library in one process; a result for each that was reached, the
    last of which may be a failure."""
    card = CARDS[part[0]["card"]]
    settings = {"OMP_NUM_THREADS": "1"}
    if part[0]["library"]:
        settings["PYTHONPATH"] = str(PACKAGES / part[0]["library"])
    command = [interpreter, FOLDER / "train.py", json.dumps([data.settings(row) for row in part])]
    run = bench.simulate(command, memory, ["--no-pool", "--profile", card["profile"]], settings)
    results = run.lines
    if len(results) < len(part):
        results.append({"verdict": "failed", "error": run.stderr.strip()[-400:]})
    return results


def groups(left):
    """Parts of the rows that one process can run."""
    kinds = {}
    for row in left:
        kinds.setdefault((row["card"], row["library"]), []).append(row)
    for rows in kinds.values():
        for first in range(0, len(rows), AT_ONCE):
            yield rows[first:first + AT_ONCE]


def may_vary(row):
    """Whether a batch of the source may be without any text of the greatest length."""
    return row["source"] == "xmem" and row["kind"] == "transformer" and \
        row["batch"] <= evaluate.FEW and not row.get("oom")


def again(interpreter, part, runs, name):
    """Runs rows with ample memory and keeps the peak under another name."""
    if part:
        memory = AMPLE * CARDS[part[0]["card"]]["total"]
        for row, result in zip(part, train(interpreter, part, memory)):
            runs[row["key"]][name] = result.get("reserved")


def run_all(interpreter, left, runs):
    """Runs rows, and those that do not fit once more with ample memory for their peak."""
    for part in groups(left):
        card = CARDS[part[0]["card"]]
        limit = card["total"] - card["held"]
        waiting = part
        while waiting:
            results = train(interpreter, waiting, limit)
            for row, result in zip(waiting, results):
                runs[row["key"]] = dict(result, limit=limit, profile=card["profile"],
                                        library=row["library"], settings=data.settings(row))
            waiting = waiting[len(results):]
        short = [row for row in part if runs[row["key"]]["verdict"] == "out of memory" and
                 not row.get("oom")]
        again(interpreter, short, runs, "ample")
        again(interpreter, [dict(row, lengths=VARIED) for row in part if may_vary(row)], runs,
              "varied")
        data.write_runs(runs)
        print(f"{len(part)} rows on {part[0]['card']}", file=sys.stderr)


def current(row, runs):
    """Whether the result of a row is for its settings of today."""
    run = runs.get(row["key"])
    card = CARDS[row["card"]]
    return run and run["settings"] == data.settings(row) and \
        run.get("library") == row["library"] and run.get("profile") == card["profile"] and \
        run["limit"] == card["total"] - card["held"]


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(77)
    rows, runs = data.load(), data.read_runs()
    left = [row for row in rows if "--again" in sys.argv or not current(row, runs)]
    for library in {row["library"] for row in left} - {None}:
        fetch(interpreter, library)
    run_all(interpreter, left, runs)
    evaluate.report(rows, runs, bench.JSON)


if __name__ == "__main__":
    main()
