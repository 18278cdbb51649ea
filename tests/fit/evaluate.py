#!/usr/bin/env python3
"""Compares the predictions for the benchmark `fit` with what others measured.

    evaluate.py            prints the tables
    evaluate.py --cards    prints what the calibration half says of the cards
    evaluate.py --publish  writes tests/bench/results/fit.json for docs/dev/performance/fit.md

The estimate is the reserved memory on the simulated GPU and what the measure of the source counts
besides (cards.py). The upper bound is the estimate times a factor for the kind of model. For small
batches of text, whose lengths differ from step to step, it is not below the peak with lengths that
differ.
"""
import json
import math
import statistics
import sys

import rows as data
from cards import ABOVE, CARDS, MIB

PEERS = ("xMem", "DNNMem", "SchedTune", "FakeTensor", "accelerate", "MemTracker")
# Peaks by PyTorch's MemTracker of a few rows, from peers.py.
TRACKED = json.loads((data.HERE / "results/memtracker.json").read_text())
FEW = 15  # texts in a batch, of which none may be long
PUBLISHED = data.HERE.parent / "bench/results/fit.json"


def reserved(run):
    """The peak of a run; where it did not fit, that with ample memory."""
    return run.get("ample") if run["verdict"] == "out of memory" else run.get("reserved")


def ours(row, run):
    """(estimate or None, says out of memory, upper bound or None)"""
    peak = run.get("allocated") if row.get("measured") == "allocated" else reserved(run)
    if not peak:
        return None, run["verdict"] == "out of memory", None
    estimate = peak + CARDS[row["card"]]["besides"] * (row.get("measured") is None)
    bound = max(estimate * (1 + ABOVE[row["kind"]]), run.get("varied", 0))
    return estimate, run["verdict"] == "out of memory", bound


def of_peer(peer, row, run):
    """The same of a peer, whose bound is its estimate."""
    estimate = row.get(peer)
    if peer == "accelerate":
        copies = 1 if "generat" in row.get("method", row.get("loop", "")) else 4
        estimate = copies * run["parameters"] if run.get("parameters") else None
    if peer == "MemTracker":
        estimate = TRACKED.get(row["key"])
    if estimate is None:
        return None, None, None
    says = row.get(peer + " oom", False) or estimate > CARDS[row["card"]]["total"]
    return estimate, says, estimate


def quantile(values, share):
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def summary(rows, runs, predict):
    """Figures of one predictor over rows; None where it predicts none of them."""
    errors, below, verdicts, under = [], [], [], []
    for row in rows:
        run = runs[row["key"]]
        estimate, says, bound = predict(row, run)
        if "oom" in row and says is not None:
            verdicts.append(says == row["oom"])
        if estimate is None or row.get("oom"):
            continue
        errors.append(100 * (estimate / row["truth"] - 1))
        under.append(estimate < row["truth"])
        below.append(bound < row["truth"])
    if not errors:
        return None
    sizes = [abs(error) for error in errors]
    return {"runs": len(errors), "median": statistics.median(sizes), "p95": quantile(sizes, 0.95),
            "worst": max(errors, key=abs), "under": 100 * sum(under) / len(under),
            "below": 100 * sum(below) / len(below),
            "verdicts": len(verdicts), "right": sum(verdicts)}


def predictors():
    found = {"spillway": ours}
    for peer in PEERS:
        found[peer] = lambda row, run, peer=peer: of_peer(peer, row, run)
    return found


def figures(rows, runs):
    """(half, kind, predictor, summary) of all that there is."""
    done = [row for row in rows if runs.get(row["key"], {}).get("verdict") in
            ("fits", "out of memory")]
    for source in sorted({row["source"] for row in done}):
        for half in ("held out", "calibration"):
            for kind in ("transformer", "CNN", "layers"):
                part = [row for row in done if (row["source"], row["half"], row["kind"]) ==
                        (source, half, kind)]
                for name, predict in predictors().items():
                    found = summary(part, runs, predict) if part else None
                    if found:
                        yield source, half, kind, name, found


def cells(source, half, kind, name, found):
    verdicts = f"{found['right']} of {found['verdicts']}" if found["verdicts"] else ""
    return [source, half, kind, name, str(found["runs"]), f"{found['median']:.1f}",
            f"{found['p95']:.1f}", f"{found['worst']:+.1f}", f"{found['under']:.0f}",
            f"{found['below']:.1f}", verdicts]


COLUMNS = ["source", "half", "models", "predictor", "runs", "median %", "P95 %", "worst %",
           "under %", "bound too low %", "right verdicts"]


def why(row):
    """What is known of the reason of an error of more than 5 %."""
    if row["source"] == "gpumemnet":
        return "not explained: the versions, cuDNN's too, and the optimizer are not known"
    if row["source"] != "xmem":
        return "not explained"
    if row["model"].startswith("ConvNeXt"):
        return "not explained: cuDNN's workspaces here are smaller than the error"
    if row["kind"] == "CNN":
        return "cuDNN 9.1 of the source chose other engines than cuDNN 9.19, which was asked"
    if row["batch"] <= FEW:
        return "the lengths of the batches are not known; 128 was assumed"
    return "not explained: once more or less the size of the logits"


def losing(rows, runs):
    """Rows that are off by more than 5 %, the worst first."""
    found = []
    for row in rows:
        run = runs.get(row["key"], {})
        if run.get("verdict") not in ("fits", "out of memory"):
            continue
        estimate, says, _ = ours(row, run)
        wrong = "oom" in row and says != row["oom"]
        error = 100 * (estimate / row["truth"] - 1) if estimate and not row.get("oom") else 0
        if wrong or abs(error) > 5:
            found.append((error, wrong, row, estimate))
    return sorted(found, key=lambda item: (-item[1], -abs(item[0])))


def losing_cells(rows, runs):
    lines = []
    for error, wrong, row, estimate in losing(rows, runs):
        said = ("fits" if row["oom"] else "out of memory") if wrong else ""
        lines.append([row["model"].split("/")[-1], row.get("optimizer", ""), str(row["batch"]),
                      row["card"], row["half"], f"{row['truth'] / MIB:.0f}",
                      f"{estimate / MIB:.0f}" if estimate else "", f"{error:+.1f}" if error else "",
                      said, row.get("why") or why(row)])
    return lines


LOSING = ["model", "optimizer", "batch", "card", "half", "measured MiB", "estimate MiB", "error %",
          "wrong verdict", "why"]


def print_table(columns, lines):
    widths = [max(len(line[i]) for line in [columns, *lines]) for i in range(len(columns))]
    for line in [columns, *lines]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def report(rows, runs, as_json=False):
    if as_json:
        for source, half, kind, name, found in figures(rows, runs):
            print(json.dumps(dict(source=source, half=half, kind=kind, predictor=name, **found)))
        return
    print_table(COLUMNS, [cells(*line) for line in figures(rows, runs)])
    print()
    print_table(LOSING, losing_cells(rows, runs))


def print_cards(rows, runs):
    """What the calibration half says: medians of what is counted besides, and the factors."""
    half = [row for row in rows if row["half"] == "calibration" and
            runs.get(row["key"], {}).get("verdict") in ("fits", "out of memory")]
    for card, facts in CARDS.items():
        part = [row for row in half if row["card"] == card]
        besides = [row["truth"] - reserved(runs[row["key"]]) for row in part
                   if not row.get("oom") and row["kind"] == "transformer"]
        most = max((row["truth"] for row in part if row.get("measured") is None), default=0)
        if besides:
            print(f"{card}: besides {statistics.median(besides) / MIB:.0f} MiB of {len(besides)}, "
                  f"held at most {(facts['total'] - most) / MIB:.0f} MiB")
    for kind in ABOVE:
        needed = [row["truth"] / ours(row, runs[row["key"]])[0] - 1 for row in half
                  if row["kind"] == kind and not row.get("oom")]
        if needed:
            print(f"{kind}: above {max(needed):.3f}, {quantile(needed, 0.99):.3f} of 99 %")


def publish(rows, runs):
    tables = [{"title": "", "columns": COLUMNS,
               "rows": [cells(*line) for line in figures(rows, runs)]},
              {"title": "Rows that are off by more than 5 %, and wrong verdicts",
               "columns": LOSING, "rows": losing_cells(rows, runs)}]
    head = {"benchmark": "fit", "command": "scripts/bench fit", "date": "2026-11-24", "commit": ""}
    text = json.dumps(head, indent=1)[:-2] + ',\n "tables": [\n'
    for table in tables:
        lines = ",\n".join("    " + json.dumps(line) for line in table["rows"])
        text += (f'  {{\n   "title": {json.dumps(table["title"])},\n'
                 f'   "columns": {json.dumps(table["columns"])},\n'
                 f'   "rows": [\n{lines}\n   ]\n  }}')
        text += ",\n" if table is tables[0] else "\n"
    PUBLISHED.write_text(text + " ]\n}\n")


def main():
    rows, runs = data.load(), data.read_runs()
    if "--publish" in sys.argv:
        publish(rows, runs)
    elif "--cards" in sys.argv:
        print_cards(rows, runs)
    else:
        report(rows, runs)


if __name__ == "__main__":
    main()
