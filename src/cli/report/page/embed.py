#!/usr/bin/env python3
"""usage: embed.py PAGE OUTPUT

Writes PAGE as two C arrays: the part before @DATA@, and the part after it. A line @INCLUDE NAME@
stands for the file NAME beside PAGE."""
import pathlib
import re
import sys

page = pathlib.Path(sys.argv[1])
whole = re.sub(r"^@INCLUDE (.*)@\n", lambda found: (page.parent / found[1]).read_text(),
               page.read_text(), flags=re.MULTILINE)
before, after = whole.encode().split(b"@DATA@")
pathlib.Path(sys.argv[2]).write_text("".join(
    f"static const char page_{name}[] = {{{','.join(map(str, [*part, 0]))}}};\n"
    for name, part in (("before", before), ("after", after))))
