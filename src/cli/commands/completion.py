#!/usr/bin/env python3
"""usage: completion.py OUTPUT NAME=FILE ...

Writes each FILE as a C array, completion_NAME."""
import pathlib
import sys

pathlib.Path(sys.argv[1]).write_text("".join(
    f"static const char completion_{name}[] = "
    f"{{{','.join(map(str, [*pathlib.Path(path).read_bytes(), 0]))}}};\n"
    for name, path in (argument.split("=", 1) for argument in sys.argv[2:])))
