"""A page that was written, for programs: the rows.json of a check, or the page.md of one of which
nothing else was kept."""
import pathlib
import re

import page
from page import Unreadable

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class Page:
    """path; name: that of the committed file; facts; rows by their names, as in rows.json."""

    def __init__(self, path, facts, rows):
        self.path = path
        self.name = path.parent.name if path.name == "rows.json" else path.stem
        self.facts = facts
        self.rows = {row["name"]: row for row in rows}

    def value(self, row, subject):
        """The value of a finding, or None where the row did not come to it."""
        for finding in self.rows.get(row, {}).get("findings", ()):
            if finding["subject"] == subject:
                return str(finding["value"])
        return None

    def matching(self, row, pattern):
        """[(match of the whole subject, value)] of a row's findings."""
        found = ((re.fullmatch(pattern, finding["subject"]), str(finding["value"]))
                 for finding in self.rows.get(row, {}).get("findings", ()))
        return [(match, value) for match, value in found if match]

    def seconds(self, row, subject):
        """A finding that is a time, such as "4.188 ms"."""
        value = self.value(row, subject)
        match = re.match(rf"({NUMBER.pattern}) (ns|us|ms|s)\b", value or "")
        if match is None:
            raise Unreadable(f"{self.path}: row {row}, \"{subject}\": a time is expected, "
                             f"found {repr(value) if value else 'nothing'}")
        return float(match.group(1)) * UNITS[match.group(2)]

    def data(self, row, name):
        """A list that a row attached; empty where it did not."""
        found = self.rows.get(row, {}).get("data", {})
        return found.get(name, []) if isinstance(found, dict) else []


def add_findings(text, rows):
    """Those of a page.md, whose sections are of the rows that have several."""
    by_title = {}
    for row in rows:
        by_title[row["name"]] = by_title[f"{row['name']}, {row['card']}"] = row["findings"]
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        found = by_title.get(section.partition("\n")[0], [])
        found += [{"state": state, "subject": subject, "value": value} for subject, state, value
                  in re.findall(r"^\| (.*?) \| (\w+) \| (.*?) ?\|$", section, re.MULTILINE)
                  if state != "state"]


def is_row(row):
    return {"name", "result", "findings"} <= row.keys() and all(
        {"state", "subject", "value"} <= finding.keys() for finding in row["findings"])


def of_card(path, rows, card):
    """The rows of one card; without a name there must be but one."""
    cards = sorted({row["card"] for row in rows})
    if card and card not in cards or not card and len(cards) > 1:
        raise Unreadable(f"{path}: --card with one of {', '.join(map(repr, cards))} is expected")
    return [row for row in rows if not card or row["card"] == card]


def read(path, card=""):
    """The page in a folder that a check wrote, or in a .json or .md file."""
    path = pathlib.Path(path)
    try:
        facts, rows = page.load(path)
        if path.is_dir():
            path = next(path / name for name in page.FILES if (path / name).exists())
        text = path.read_text()
        if path.suffix != ".json":
            add_findings(text, rows)
        good = all(map(is_row, rows))
    except (AttributeError, TypeError):
        good = False
    if not good or not rows:
        raise Unreadable(f"{path}: no rows of scripts/gpu-check are in it")
    if facts.get("simulated") or page.REHEARSAL in text:
        raise Unreadable(f"{path}: a rehearsal on the simulated GPU; a page of a real one is "
                         "expected")
    return Page(path, facts, of_card(path, rows, card))
