#!/usr/bin/env python3
"""Comments and documents are plain English: no retired words, few riddling sentences.

    test_words.py --list [PATH...]    prints the sentences and the words that count, by file
"""
import re
import sys
import unittest

import tree
from house import source

# Beginnings of a sentence whose subject is a clause: the reader learns what it is about last.
FREE_RELATIVE = re.compile(r"(What|Whatever|Whether|Who|Whoever|Where it|Where they|The same)\b")
SHARE_OF_ALL = 0.015
SHARE_OF_FILE = 0.05
# In a short file one sentence is more than the share.
ALWAYS_ALLOWED = 1

# Words that only this project used. docs/reference/glossary.md explains their successors.
RETIRED = {
    r"astray": "following the wrong repetition",
    r"belie(f|ve|ved|ves)": "validated",
    r"surprises?": "misprediction",
    r"heirs?|twins?": "successor, predecessor",
    r"in vain": "wasted",
    r"condemn(s|ed)?|reviv(e|es|ed)": "retire, reinstate",
    r"bur(y|ied|ies)": "unref",
    r"scrap(e|es|ed)": "reclaim",
    r"sheds?": "evict",
    r"mend(s|ed|ing)?": "repair, retry, remap",
    r"seams?": "backend, interface",
    r"lanes?": "stream queue",
    r"foresee(s|n)?|foresaw": "predict",
    r"wish(es)?": "placement, request",
    r"doctor_beside|doctor_aside": "doctor_concurrency, doctor_disabled",
}
RETIRED_RE = re.compile(r"(?<![\w-])(" + "|".join(RETIRED) + r")(?![\w-])", re.IGNORECASE)
# In names also these, which sentences may have.
RETIRED_NAME_RE = re.compile("|".join(RETIRED) + "|told|meet", re.IGNORECASE)
# Counters, whose names are those of the statistics.
KEPT_NAMES = {"believed_moves", "uses_foreseen"}

# Marks of a sentence that is read twice, anywhere in it, and the most sentences that have each.
MARKERS = {
    "what": r"\bwhat (is|was|are|were|it|they|the|an?)\b",
    "told": r"\b(told|tells|says|said)\b",
    "which": r"\b((of|in|by|from|for|on|to|with|at|after|until) which|those that)\b",
    "else": r"\b(as far as|besides|meanwhile|else|too)\b",
}
SHARE_OF_MARKER = 0.006
# Shorter ones are mostly notes beside a member, which dilute the shares.
MARKED_WORDS_LEAST = 6

# Names of the contract, whose words stay, and the list above.
EXCEPTIONS = {"tests/style/test_words.py", "docs/reference/glossary.md", "CHANGELOG.md"}

CODE = tree.matching("src include tests", ".c", ".h", ".def", ".cu", ".cpp", ".in")
PROSE = [path for path in tree.files() if path.suffix == ".md"
         and path.parts[:2] != ("tests", "traces") and "results" not in path.parts]


def comments(path):
    """The comments of a C file as text, one string for each."""
    for match in re.finditer(r'/\*(.*?)\*/|"(?:\\.|[^"\\\n])*"', tree.text(path), re.S):
        if match.group(1) is not None:
            yield re.sub(r"\n\s*\*? ?", " ", match.group(1)).strip()


def sentences(text):
    return [part.strip() for part in re.split(r"(?<=[.:;!?])\s+(?=[A-Z])", text)
            if re.search(r"[a-z]{2}", part)]


def riddles(path):
    """(all sentences, those that begin with a free relative) of the comments of a file."""
    every = [sentence for comment in comments(path) for sentence in sentences(comment)]
    return every, [sentence for sentence in every if FREE_RELATIVE.match(sentence)]


def marked(paths):
    """({marker: how many sentences have it}, how many sentences) of the comments of files."""
    every = [sentence for path in paths for comment in comments(path)
             for sentence in sentences(comment) if len(sentence.split()) >= MARKED_WORDS_LEAST]
    return {marker: sum(bool(re.search(pattern, sentence, re.IGNORECASE)) for sentence in every)
            for marker, pattern in MARKERS.items()}, len(every)


def is_retired(name):
    return name not in KEPT_NAMES and any(map(RETIRED_NAME_RE.fullmatch, name.split("_")))


def retired(path):
    """(line, word) of the retired words in a document, or in the comments, strings and names of a
    source. Tests may have such names."""
    text = names = tree.text(path)
    if path.suffix != ".md":
        names = tree.code(path) if path.parts[0] != "tests" else ""
        kept = lambda match: match.group() if match.group()[0] in '/"' else \
            re.sub(r"[^\n]", " ", match.group())
        text = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|[^/"]+|.', kept, text, flags=re.S)
    found = [(match.start(), match.group()) for match in RETIRED_RE.finditer(text)]
    if path.suffix != ".md":
        found += [(match.start(), match.group()) for match in re.finditer(r"[A-Za-z_]\w*", names)
                  if is_retired(match.group())]
    return [(tree.line_of(tree.text(path), place), word) for place, word in sorted(found)]


class Words(unittest.TestCase):
    maxDiff = None

    def test_sentences_begin_with_their_subject(self):
        total, found, wrong = 0, 0, []
        for path in CODE:
            every, begun = riddles(path)
            total += len(every)
            found += len(begun)
            if len(begun) > max(ALWAYS_ALLOWED, SHARE_OF_FILE * len(every)):
                wrong.append(f"{path}: {len(begun)} of {len(every)} sentences")
        self.assertGreater(total, 1000)
        self.assertEqual(wrong, [])
        self.assertLessEqual(found / total, SHARE_OF_ALL)

    def test_sentences_are_read_once(self):
        for part in ("object", "command", "simulator"):
            found, total = marked(source.files(part))
            with self.subTest(part=part):
                self.assertGreater(total, 1000)
                self.assertLessEqual(max(found.values()) / total, SHARE_OF_MARKER, found)

    def test_retired_words_stay_away(self):
        self.assertEqual([f"{path}:{line}: {word}" for path in CODE + PROSE
                          if str(path) not in EXCEPTIONS for line, word in retired(path)], [])


def print_findings(chosen):
    total = found = 0
    for path in CODE + PROSE:
        if chosen and not str(path).startswith(tuple(chosen)) or str(path) in EXCEPTIONS:
            continue
        every, begun = riddles(path) if path in CODE else ([], [])
        total, found = total + len(every), found + len(begun)
        for sentence in begun:
            print(f"{path}: {sentence[:100]}")
        for line, word in retired(path):
            print(f"{path}:{line}: retired word: {word}")
    print(f"{found} of {total} sentences begin with a free relative")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--list"]:
        print_findings(sys.argv[2:])
    else:
        unittest.main()
