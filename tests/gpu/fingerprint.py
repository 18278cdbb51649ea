#!/usr/bin/env python3
"""The fingerprint of each row: a hash of the code that its outcome depends on. As a command: prints
them all, for the bundle, whose programs are of the tree as it is now."""
import functools
import hashlib
import inspect
import json
import pathlib

from rows import CODE, TABLE
from setting import SOURCE

FILE = "gpu-check/code.json"  # in the bundle
LENGTH = 12


@functools.cache
def content(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def files_of(word, source):
    paths, but = CODE.get(word, ((word,), ()))
    found = set()
    for path in (path for pattern in paths for path in source.glob(pattern)):
        below = [path] if path.is_file() else filter(pathlib.Path.is_file, path.rglob("*"))
        found |= {file for file in below if "__pycache__" not in file.parts and
                  not any(file.is_relative_to(source / folder) for folder in but)}
    return found


def files(row, source=SOURCE):
    """The files of the tree that the row depends on."""
    return sorted(set().union(*(files_of(word, source) for word in row.depends)))


def of(row, source=SOURCE):
    # Without the decorator: a row is no other when it costs more.
    parts = [inspect.getsource(row.function).partition("\ndef ")[2]]
    parts += [f"{path.relative_to(source)} {content(path)}" for path in files(row, source)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:LENGTH]


def of_tree():
    """{row: fingerprint} of the tree as it is now."""
    return {row.name: of(row) for row in TABLE.values()}


def of_root(root):
    """Those of the bundle, or of the tree that was built here."""
    try:
        return json.loads((pathlib.Path(root) / FILE).read_text())
    except (OSError, ValueError):
        return of_tree()


if __name__ == "__main__":
    print(json.dumps(of_tree(), indent=1))
