#!/usr/bin/env python3
"""Each folder of src/ has a charter (charters.py), which lists all of its modules and no other."""
import unittest

import charters
import tree

LINE = 90
# Their files are being moved.
LATER = ("src/pool", "src/migrate")


class Charters(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folders = {folder: found for folder, found in charters.folders().items()
                        if not str(folder).startswith(LATER)}

    def test_one_in_each_folder(self):
        self.assertGreater(len(self.folders), 40)
        self.assertEqual([f"{folder}: {[str(charter.path) for charter in found]}"
                          for folder, found in self.folders.items() if len(found) != 1], [])

    def test_the_main_header_has_it(self):
        """The one that is named like the folder, where there is one."""
        named = {folder: folder / f"{folder.name}.h" for folder in self.folders}
        self.assertEqual([str(header) for folder, header in named.items()
                          for charter in self.folders[folder]
                          if (tree.ROOT / header).exists() and charter.path != header], [])

    def test_modules(self):
        for folder, found in self.folders.items():
            with self.subTest(folder=str(folder)):
                self.assertEqual([name for charter in found for name, _ in charter.lines],
                                 sorted(charters.modules()[folder]))

    def test_lines(self):
        """Short, and not what the module's own files begin with."""
        wrong = []
        for folder, found in self.folders.items():
            for name, text in [line for charter in found for line in charter.lines]:
                begin = [charters.opening(path)[:1] for path in charters.modules()[folder][name]]
                if len(text) > LINE or any(text.lower() == sentence.lower().partition(".")[0]
                                           for sentences in begin for sentence in sentences):
                    wrong.append(f"{folder}/{name}: {text}")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
