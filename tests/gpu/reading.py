"""A page that was written, for programs: the rows.json of a check, or the page.md of one of which
nothing else was kept."""
import json
import pathlib
import re

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class Unreadable(Exception):
    """One line: what is wrong with a page, and where."""


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


def of_markdown(text):
    """(facts, rows) of a page.md; cells have lost what page.cell() took from them."""
    title = re.match(r"# (.*), (\S*)\n", text)
    if title is None:
        return {}, []
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    facts = {"gpu": title.group(1), "date": title.group(2),
             **dict(re.findall(r"^- ([^:\n]+): (.*)$", head, re.MULTILINE))}
    if "a rehearsal on the simulated GPU" in head:
        facts["simulated"] = True
    rows = {name: {"name": name, "result": result, "seconds": float(seconds), "findings": []}
            for name, result, seconds in re.findall(
                r"^\| ([\w-]+) \| ([^|]+) \| ([\d.]+) \|", head, re.MULTILINE)}
    for section in sections:
        name = section.partition("\n")[0]
        for subject, state, value in re.findall(r"^\| (.*?) \| (\w+) \| (.*?) ?\|$", section,
                                                re.MULTILINE):
            if name in rows and state != "state":
                rows[name]["findings"].append({"state": state, "subject": subject, "value": value})
    return facts, list(rows.values())


def is_row(row):
    return {"name", "result", "findings"} <= row.keys() and all(
        {"state", "subject", "value"} <= finding.keys() for finding in row["findings"])


def of_json(text):
    found = json.loads(text)
    if not all(map(is_row, found["rows"])):
        raise ValueError("no rows")
    return dict(found["facts"]), found["rows"]


def read(path):
    """The page in a folder that a check wrote, or in a .json or .md file."""
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / "rows.json"
    try:
        text = path.read_text()
        facts, rows = of_json(text) if path.suffix == ".json" else of_markdown(text)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Unreadable(f"{path}: the rows.json or the page.md of scripts/gpu-check is "
                         "expected") from None
    if not rows:
        raise Unreadable(f"{path}: it has no rows; a page of scripts/gpu-check is expected")
    if facts.get("simulated"):
        raise Unreadable(f"{path}: a rehearsal on the simulated GPU; a page of a real one is "
                         "expected")
    return Page(path, facts, rows)
