"""The page: what all rows said, as Markdown for people and JSON for programs.

Both are written anew after each row and replaced in one step, so that at any time a complete
page of what is known lies there."""
import json
import os

import findings


def cell(text):
    return findings.clean(text).replace("|", "/")


def headline(row):
    """One line on a row: its reason, what is wrong, as many figures as fit, how many are right."""
    by_state = {state: [] for state in findings.STATES}
    for finding in row["findings"]:
        text = finding["subject"] + (f": {finding['value']}" if finding["value"] else "")
        by_state[finding["state"]].append(text if len(text) <= 110 else text[:110] + " ...")
    parts = [row["reason"]] if row["reason"] else []
    parts += [f"{state}: {text}" for state in ("wrong", "failed", "skipped")
              for text in by_state[state][:3]]
    for text in by_state["figure"]:
        if sum(map(len, parts)) + len(text) > 200:
            parts.append("more below")
            break
        parts.append(text)
    for state, name in (("wrong", "wrong"), ("failed", "failed"), ("ok", "right"),
                        ("unmeasurable", "not measurable on the simulated GPU")):
        if by_state[state]:
            parts.append(f"{len(by_state[state])} {name}")
    return "; ".join(row["notes"] + parts)


def section(row):
    """The findings of a row as a table of their own."""
    found = [finding for finding in row["findings"] if finding["state"] != "end"]
    if len(found) < 2:
        return []
    return ["", f"## {row['name']}", "", row["what"], "", "| finding | state | value |",
            "|---|---|---|",
            *(f"| {cell(finding['subject'])} | {finding['state']} | {cell(finding['value'])} |"
              for finding in found)]


def is_bad(row):
    return row["result"].split(" (")[0] in findings.BAD or row["result"] == "began"


def counts(rows):
    found = {}
    for row in rows:
        found[row["result"]] = found.get(row["result"], 0) + 1
    return ", ".join(f"{count} {result}" for result, count in sorted(found.items()))


def markdown(facts, rows):
    """The whole page. A row that began and never ended is the one that took everything down."""
    bad = [row["name"] for row in rows if is_bad(row)]
    lines = [f"# {cell(facts.get('gpu', 'unknown GPU'))}, {facts.get('date', '')}", ""]
    if facts.get("simulated"):
        lines += ["**This page is a rehearsal on the simulated GPU. It says nothing about a real "
                  "one.**", ""]
    lines += [f"- {key}: {cell(value)}" for key, value in facts.items()
              if key not in ("gpu", "date", "simulated")]
    lines += [f"- rows: {counts(rows) or 'none'}",
              f"- bad: {', '.join(bad) if bad else 'none'}", "",
              "`docs/gpu-check.md` says what each row decides.", "",
              "| row | result | seconds | findings |", "|---|---|---|---|"]
    lines += [f"| {row['name']} | {row['result']} | {row['seconds']:.1f} | {cell(headline(row))} |"
              for row in rows]
    for row in rows:
        lines += section(row)
    return "\n".join(lines) + "\n"


def replace(path, text):
    """Writes a file so that it is old or new, never half."""
    other = path.with_name(path.name + ".new")
    with open(other, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(other, path)


def write(folder, facts, rows):
    replace(folder / "rows.json", json.dumps({"facts": facts, "rows": rows}, indent=1) + "\n")
    replace(folder / "page.md", markdown(facts, rows))


def read(folder):
    """(facts, rows) of an output folder; nothing where there is none."""
    try:
        found = json.loads((folder / "rows.json").read_text())
        return dict(found["facts"]), list(found["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, []


def join(folders):
    """The facts of the first, and of each row the last that ran."""
    facts, rows = {}, {}
    for folder in folders:
        found, more = read(folder)
        facts = facts or found
        for row in more:
            if row["name"] not in rows or row["result"] != "not run":
                rows[row["name"]] = row
    return facts, list(rows.values())
