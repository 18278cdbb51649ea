"""The rows of the benchmark `fit`: configurations and measured memory of others (data/), what the
simulated GPU said of them (results/runs.json), and the half that a row belongs to."""
import hashlib
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
RUNS = HERE / "results/runs.json"
# What decides how a row is trained; the rest is about its measurement.
SETTINGS = ("model", "optimizer", "batch", "zero_grad", "length", "lengths", "image", "steps",
            "dtype", "method", "checkpointing", "accumulate", "loop", "mixed",
            "older", "until", "classes", "ranks",
            "size", "width")


def sources():
    return [dict(json.loads(path.read_text()), id=path.stem)
            for path in sorted((HERE / "data").glob("*.json"))]


def half(name):
    """Half of the rows are for calibration, by a hash of the name of the run."""
    even = hashlib.sha256(name.encode()).digest()[0] % 2 == 0
    return "calibration" if even else "held out"


def load():
    """All rows that can be run; each with its source, the half and a key for its result."""
    found = []
    for source in sources():
        for row in source["rows"]:
            if "model" in row:
                found.append(dict(row, source=source["id"], library=source.get("library"),
                                  half=half(row["name"]),
                                  key=f"{source['id']} {row['name']} {row['card']}"))
    return found


def settings(row):
    return {name: row[name] for name in SETTINGS if name in row}


def read_runs():
    return json.loads(RUNS.read_text()) if RUNS.exists() else {}


def write_runs(runs):
    """One line for each run, so that a change shows in a diff."""
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(runs[key])}" for key in sorted(runs))
    RUNS.write_text("{\n" + lines + "\n}\n")
