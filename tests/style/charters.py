"""The charters of the folders of src/. The main header of a folder opens with the folder's job,
what it does not know, and one line for each of its modules:

    /* The devices: pool, backend and host tier of each. It does not know the handlers.
     *
     *   access     the other devices that may reach a device's memory
     *   contexts   the contexts that exist, each with its device

A module is all files of one name: lock.c, lock.h and lock.def. A folder without C files is in the
charter of the folder above it, as FOLDER/NAME.
"""
import collections
import functools
import re

import tree

Charter = collections.namedtuple("Charter", "path job unknown lines")


def opening(path):
    """The paragraphs of the comment that a file begins with."""
    comment = re.match(r"/\* (.*?) ?\*/", tree.text(path), re.S)
    return comment.group(1).split("\n *\n") if comment else []


def charter(path):
    first, *others = opening(path) or [""]
    match = re.fullmatch(r"(.*) It does not know (.*)\.", first.replace("\n * ", " "))
    lines = re.findall(r"^ \*   (\S+) +(.*)$", others[0], re.MULTILINE) if others else []
    return Charter(path, *match.groups(), lines) if match and lines else None


@functools.cache
def folders():
    """{folder: its charters} of each folder of src/ with C files; there should be one of each."""
    found = collections.defaultdict(list)
    for path in tree.matching("src", ".c", ".h"):
        found[path.parent] += filter(None, [charter(path)])
    return dict(found)


@functools.cache
def modules():
    """{folder: {module: its files}} of the same folders, as charters name the modules."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in tree.files():
        if path.parts[0] == "src" and path.name != "meson.build":
            folder = next(folder for folder in path.parents if folder in folders())
            name = path.relative_to(folder).with_name(path.name.split(".")[0])
            found[folder][str(name)].append(path)
    return found
