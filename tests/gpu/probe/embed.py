#!/usr/bin/env python3
"""Writes text files as C strings.

    embed.py OUTPUT.c FILE...

The name of a string is that of its file, with an underscore for the dot."""
import pathlib
import sys


def string(path):
    lines = [line.replace("\\", "\\\\").replace('"', '\\"')
             for line in path.read_text().splitlines()]
    return "\n".join([f"const char {path.name.replace('.', '_')}[] =",
                      *(f'    "{line}\\n"' for line in lines)]) + ";\n"


def main():
    output, *paths = map(pathlib.Path, sys.argv[1:])
    output.write_text('#include "kernels.h"\n\n'
                      '#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n' +
                      "\n".join(map(string, paths)))


if __name__ == "__main__":
    main()
