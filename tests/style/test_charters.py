#!/usr/bin/env python3
"""Each folder of src/ has a charter (charters.py), which lists all of its modules and no other."""
import unittest

import charters
import tree

LINE = 90


def begins(path):
    """The first sentence of a file."""
    return "".join(charters.opening(path)[:1]).replace("\n * ", " ").partition(".")[0].lower()


class Charters(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folders = charters.folders()

    def test_main_header(self):
        """One file of each folder has the charter: the header of the folder's name, if any."""
        self.assertGreater(len(self.folders), 40)
        for folder, found in self.folders.items():
            with self.subTest(folder=str(folder)):
                self.assertEqual(len(found), 1)
                named = folder / f"{folder.name}.h"
                self.assertTrue(named not in tree.files() or found[0].path == named)

    def test_modules(self):
        for folder, found in self.folders.items():
            with self.subTest(folder=str(folder)):
                self.assertEqual(sorted(name for charter in found for name, _ in charter.lines),
                                 sorted(charters.modules()[folder]))

    def test_lines(self):
        """A line is short, and no file of its module begins with it."""
        lines = [(folder, *line) for folder, found in self.folders.items()
                 for charter in found for line in charter.lines]
        self.assertEqual([f"{folder}/{name}: {text}" for folder, name, text in lines
                          if len(text) > LINE or text.lower() in
                          map(begins, charters.modules()[folder].get(name, ()))], [])


if __name__ == "__main__":
    unittest.main()
