"""The page: what all rows said, as Markdown for people and JSON for programs.

The page's last lines, which people do not see, say of each row which code, card and time it is of.
Both are written anew after each row and replaced in one step, so that at any time a complete
page of what is known lies there."""
import json
import os
import pathlib
import re

import findings

FILES = ("rows.json", "page.md")
REHEARSAL = ("**This page is a rehearsal on the simulated GPU. It says nothing about a real "
             "one.**")
ORIGIN = "<!-- row {name}: code {code}, {when}, {card} -->"


class Unreadable(Exception):
    """Why a page cannot be read."""


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


def section(row, of):
    """The findings of a row as a table of their own."""
    found = [finding for finding in row["findings"] if finding["state"] != "end"]
    if len(found) < 2:
        return []
    return ["", f"## {row['name']}{of}", "", row["what"], "", "| finding | state | value |",
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
        lines += [REHEARSAL, ""]
    lines += [f"- {key}: {cell(value)}" for key, value in facts.items()
              if key not in ("gpu", "date", "simulated")]
    lines += [f"- rows: {counts(rows) or 'none'}",
              f"- bad: {', '.join(bad) if bad else 'none'}", "",
              "`scripts/gpu-check --plan` says what each row decides, `docs/dev/gpu-check.md` what "
              "follows.",
              "",
              "| row | result | seconds | findings |", "|---|---|---|---|"]
    several = len({of_when(row) for row in rows}) > 1
    lines += [f"| {row['name']} | {row['result']} | {row['seconds']:.1f} | "
              f"{of_when(row) + '; ' if several else ''}{cell(headline(row))} |" for row in rows]
    many = len({row.get("card") for row in rows}) > 1
    for row in rows:
        lines += section(row, f", {row.get('card')}" if many else "")
    lines += ["", *(ORIGIN.format(name=row["name"], code=row.get("code", "unknown"),
                                  when=row["when"], card=cell(row["card"]))
                    for row in rows if when(row))]
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


def read(folder, name="rows.json"):
    """(facts, rows) of an output folder; nothing where there is none."""
    try:
        found = json.loads((folder / name).read_text())
        return dict(found["facts"]), list(found["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, []


def when(row):
    return row.get("when", "")


def of_when(row):
    """Of which card and day a row is."""
    return ", ".join(filter(None, (row.get("card", ""), when(row)[:10])))


def is_final(row):
    """True if the row came to an end of its own."""
    return row["result"] not in ("not run", "began")


def parse(text):
    """(facts, rows) of a page.md, with what its table says of each row."""
    title = re.match(r"# (.*), (\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
    if title is None:
        return {}, []
    origins = {}
    for line in re.findall(r"^<!-- row (.*) -->$", text, re.MULTILINE):
        match = re.fullmatch(r"([\w-]+): code (\w+), ([\dT:-]+), (.*)", line)
        if match:
            name, code, time, card = match.groups()
            origins.setdefault(name, []).append({"code": code, "when": time, "card": card})
    rows = []
    for name, result, seconds, said in re.findall(
            r"^\| ([\w-]+) \| ([\w ]+) \| ([\d.]+) \| (.*) \|$", text, re.MULTILINE):
        rows.append({"name": name, "what": "", "result": result, "seconds": float(seconds),
                     "reason": said, "findings": [], "notes": [], "card": title[1],
                     "when": title[2]} | (origins[name].pop(0) if origins.get(name) else {}))
    return {"gpu": title[1], "date": title[2], "simulated": REHEARSAL in text}, rows


def load(path):
    """(facts, rows) of a page.md, a rows.json, or a folder that has one. Raises Unreadable."""
    path = pathlib.Path(path)
    if path.is_dir():
        names = [path / name for name in FILES if (path / name).exists()]
        if not names:
            raise Unreadable(f"{path}: a folder with rows.json or page.md is expected")
        path = names[0]
    try:
        facts, rows = read(path.parent, path.name) if path.suffix == ".json" else \
            parse(path.read_text())
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise Unreadable(f"{path}: {error}") from error
    if not facts:
        raise Unreadable(f"{path}: no page of gpu-check")
    for row in rows:
        row.setdefault("card", facts.get("gpu", ""))
        row.setdefault("when", facts.get("date", ""))
    return facts, rows


def better(one, other):
    """Which of two entries of a row and card stays: one that is final, then the newer."""
    return max(one, other, key=lambda row: (is_final(row), when(row)))


def join(pages):
    """One page of several (facts, rows): of each row and card the newest that is final. What is
    said of a second card names it."""
    joined, rows = {}, {}
    for facts, more in pages:
        card = facts.get("gpu", "")
        cards = joined.setdefault("gpu", card).split(" and ")
        if card not in cards:
            joined["gpu"] += f" and {card}"
        joined = {key if card == cards[0] or key == "simulated" else f"{key} of {card}": value
                  for key, value in facts.items() if key not in ("gpu", "date")} | joined
        joined["date"] = max(joined.get("date", ""), facts.get("date", ""))
        for row in more:
            key = row["name"], row["card"]
            rows[key] = better(rows[key], row) if key in rows else row
    return joined, list(rows.values())
