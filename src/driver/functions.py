"""Reads the rows of functions.def and submit.def, and C parameters."""
import collections
import re

# The answers whose handlers get the call (functions.def).
CALLS = ("ON_STREAM", "IN_CONTEXT", "OF_BLOCK")
ANSWERS = ("DRIVER", "HANDLER", "HANDLER_ALWAYS", "AROUND", *CALLS)
MEMORY = ("-", "KERNEL", "POINTERS", "COPY", "DESCRIPTOR", "BATCH", "GRAPH")
AFTER = ("-", "ALLOCATES", "RESOLVES")

# The columns of each kind of row, as functions.def explains them; `params` is a list.
Function = collections.namedtuple(
    "Function", "symbol base since flags answer retry barrier memory params")
Runtime = collections.namedtuple("Runtime", "symbol after params")
Register = collections.namedtuple("Register", "symbol library result params address bytes absent")
# A row ends where another one, or anything else that is not indented, begins.
ROW = r"^(SPW_\w+)\(((?:.|\n)*?)\)\n(?=\S|\n|\Z)"
KINDS = {"SPW_FN": Function, "SPW_RUNTIME": Runtime, "SPW_REGISTER": Register}


def split_commas(text):
    """The parts of a text, split at the commas outside of parentheses."""
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [re.sub(r"\s+", " ", part).strip() for part in (*parts, text[begin:])]


def parameters(text):
    """The parameters in the parentheses `text`."""
    return [] if text == "(void)" else split_commas(text[1:-1])


def name_of(parameter):
    return re.search(r"(\w+)(\[\w*\])?$", parameter).group(1)


def type_of(parameter):
    return parameter[:parameter.rindex(name_of(parameter))].strip()


def complaint(row):
    """The mistake in the attributes of a row, or None."""
    if isinstance(row, Runtime):
        return None if row.after in AFTER else f"no such attribute: {row.after}"
    if isinstance(row, Register):
        return None
    around = row.answer == "AROUND"  # then gen_entries.py has the list of what `memory` may be
    for value, known in ((row.answer, ANSWERS), (row.retry, ("RETRY", "-")),
                         (row.barrier, ("BARRIER", "-")),
                         (row.memory, (row.memory,) if around else MEMORY)):
        if value not in known:
            return f"no such attribute: {value}"
    if around:
        return "it enqueues no work" if row.barrier != "-" else None
    if row.answer != "DRIVER" and (row.retry, row.barrier, row.memory) != ("-", "-", "-"):
        return "a handler does everything itself"
    if row.memory != "-" and row.barrier == "-":
        return "memory is reported at the submit barrier"
    return None


def rows(*paths):
    """All rows of these files, in their order."""
    found = []
    for path in paths:
        with open(path, encoding="ascii") as file:
            text = file.read()
        for kind, body in re.findall(ROW, text, re.MULTILINE):
            columns = split_commas(body)
            row = KINDS[kind](*columns)
            row = row._replace(params=parameters(row.params))
            if complaint(row) is not None:
                raise SystemExit(f"{path}: {row.symbol}: {complaint(row)}")
            found.append(row)
    return found
