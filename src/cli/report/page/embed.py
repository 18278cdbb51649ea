#!/usr/bin/env python3
"""usage: embed.py PAGE OUTPUT

Writes PAGE as two C arrays: the part before @DATA@, and the part after it."""
import pathlib
import sys

before, after = pathlib.Path(sys.argv[1]).read_bytes().split(b"@DATA@")
pathlib.Path(sys.argv[2]).write_text("".join(
    f"static const char page_{name}[] = {{{','.join(map(str, [*part, 0]))}}};\n"
    for name, part in (("before", before), ("after", after))))
