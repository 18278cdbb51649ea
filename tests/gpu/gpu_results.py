#!/usr/bin/env python3
"""What follows from a page: a table of costs for the simulator, tables for documents, and what
documents say otherwise. `scripts/gpu-results --help` explains it."""
import argparse
import pathlib
import re
import sys

import claims
import costs
import reading
import tables

COSTS = pathlib.Path("src/sim/driver/exec")


def write_costs(page, name, check):
    """The file of a cost table; 1 if it is to be as the page says, and is not."""
    if not re.fullmatch(r"[a-z][a-z0-9]*", name):
        raise reading.Unreadable(f"--costs {name}: a name of small letters and digits is expected")
    path, text = COSTS / f"costs_{name}.def", costs.table(page, name)
    known = (claims.SOURCE / path).exists()
    if known and (claims.SOURCE / path).read_text() == text:
        return 0
    print(f"{path}: {'differs from the page' if check else 'written'}")
    if check:
        return 1
    (claims.SOURCE / path).write_text(text)
    if not known:
        print(f"new: name it in src/common/option_words.def (COSTS) and {COSTS}/timing.c")
    return 0


def print_tables(page):
    for name in tables.TABLES:
        columns, lines = tables.of(page, name)
        if lines:
            print(f"<!-- generated: page {page.name} {name} -->\n\n"
                  f"{tables.markdown(columns, lines)}\n\n<!-- end -->\n")


def print_claims(page):
    """1 if the page contradicts a document."""
    wrong, stale, silent = claims.check(page)
    for line in wrong + stale:
        print(line)
    print(f"{len(claims.CLAIMS)} claims: {len(wrong)} contradicted, {len(stale)} out of date, "
          f"{silent} that the page says nothing of")
    return 1 if wrong or stale else 0


def main():
    parser = argparse.ArgumentParser(prog="scripts/gpu-results", add_help=False,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("page")
    parser.add_argument("--card", default="")
    parser.add_argument("--costs", metavar="NAME")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    try:
        page = reading.read(args.page, args.card)
        if args.costs:
            return write_costs(page, args.costs, args.check)
        if args.tables:
            print_tables(page)
            return 0
        return print_claims(page)
    except reading.Unreadable as error:
        print(f"scripts/gpu-results: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
