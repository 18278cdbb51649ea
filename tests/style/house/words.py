"""Markers of sentences that are read twice, and retired words in identifiers."""
import collections
import re

import test_words
import tree
from house import source
from house.shape import percent


def figures():
    for name in source.PARTS:
        found, total = test_words.marked(source.files(name))
        for marker, count in found.items():
            yield (f"{marker}_{name}", percent(count, total), f"{count} of {total} sentences")
    yield retired()


def retired():
    names = collections.Counter(name for path in source.files()
                                for name in re.findall(r"[A-Za-z_]\w*", tree.code(path))
                                if test_words.is_retired(name))
    return "retired", sum(names.values()), ", ".join(f"{name} {names[name]}" for name in names)
