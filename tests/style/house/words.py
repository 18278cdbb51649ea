"""Markers of sentences that are read twice, and retired words in identifiers."""
import collections
import re

import test_words
import tree
from house import source
from house.shape import percent

MARKERS = {
    "what": r"\bwhat (is|was|are|were|it|they|the|an?)\b",
    "told": r"\b(told|tells|says|said)\b",
    "which": r"\b((of|in|by|from|for|on|to|with|at|after|until) which|those that)\b",
    "else": r"\b(as far as|besides|meanwhile|else|too)\b",
}
# Shorter ones are mostly notes beside a member, which dilute the shares.
WORDS_LEAST = 6
RETIRED = ("wish", "told", "meet", "believed")


def figures():
    for name in source.PARTS:
        sentences = [sentence for path in source.files(name)
                     for comment in test_words.comments(path)
                     for sentence in test_words.sentences(comment)
                     if len(sentence.split()) >= WORDS_LEAST]
        for marker, pattern in MARKERS.items():
            found = sum(bool(re.search(pattern, sentence, re.IGNORECASE))
                        for sentence in sentences)
            yield (f"{marker}_{name}", percent(found, len(sentences)),
                   f"{found} of {len(sentences)} sentences")
    yield retired()


def retired():
    counts = collections.Counter(
        word for path in source.files() for name in re.findall(r"[A-Za-z_]\w*", tree.code(path))
        for word in name.lower().split("_") if word in RETIRED)
    return "retired", sum(counts.values()), ", ".join(f"{word} {counts[word]}" for word in RETIRED)
