"""The parts of the project, and the functions, structs and names in its C files."""
import functools
import pathlib
import re

import modules
import test_layers
import tree

PARTS = ("object", "command", "simulator")
# The command links the figures of cards; so does the simulator.
OUTSIDE = {"cli": "command", "gpu": "command", "sim": "simulator"}
# By .clang-format the body of a function stands between braces in the first column.
FUNCTION = re.compile(r"^(?P<head>[A-Za-z_][^;={}#]*?\b(?P<name>\w+)\s*"
                      r"\((?P<parameters>[^;{}()]*(?:\([^()]*\)[^;{}()]*)*)\))\s*\n"
                      r"\{\n(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)


def part(path):
    """Each layer that is linked into libspillway.so is a part of the object."""
    return OUTSIDE.get(tree.layer(path), "object")


@functools.cache
def files(name=None):
    """The .c and .h files of a part, or of all."""
    return [path for path in tree.matching("src", ".c", ".h") if name in (None, part(path))]


def lines(path):
    return tree.text(path).count("\n")


def functions(path):
    """A match of FUNCTION for each function that a file defines; comments and strings are blank."""
    return list(FUNCTION.finditer(tree.code(path)))


def is_above(path, other):
    """True if the layer of `path` may use that of `other`; src/preload.c may use every one."""
    layer, below = tree.layer(path), test_layers.BELOW.get(tree.layer(path), "").split()
    return tree.layer(other) in below or layer == "preload" != tree.layer(other)


def headers(path):
    """The project's headers that a file includes, also by way of others."""
    found, left = set(), [path]
    while left:
        for name in modules.included(left.pop()):
            header = pathlib.PurePath("src", name)
            if header not in found and (tree.ROOT / header).is_file():
                found.add(header)
                left.append(header)
    return sorted(found)


def module(path):
    return path.with_suffix("")
