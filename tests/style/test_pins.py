#!/usr/bin/env python3
"""Every package of PyPI that a script installs has a pin with the SHA-256 of its archives, and the
pins are those of the requirements."""
import fnmatch
import importlib.machinery
import importlib.util
import re
import unittest

import tree

PIN = re.compile(r"([a-z0-9-]+)==([\w.]+)( ; .+)?(( \\\n    --hash=sha256:[0-9a-f]{64})+)\n")
INSTALLERS = [path for path in tree.files() if path.parts[0] in ("scripts", "packing")
              or path.parts[:2] == ("tests", "driver")]


def load(path):
    loader = importlib.machinery.SourceFileLoader("pins", str(tree.ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("pins", loader))
    loader.exec_module(module)
    return module


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


class Pins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = load("scripts/pins")
        cls.environments = cls.script.environments()

    def pins(self, name):
        """(package, version) of each pin of a file that holds nothing else."""
        text = (self.script.PINS / f"{name}.txt").read_text()
        head, _, rest = text.partition("\n")
        self.assertRegex(head, rf"^# scripts/pins --until \d{{4}}-\d\d-\d\d {re.escape(name)}$")
        self.assertEqual(PIN.sub("", rest), "", name)
        return [found.group(1, 2) for found in PIN.finditer(rest)]

    def test_each_environment_has_its_file(self):
        self.assertEqual({path.stem for path in self.script.PINS.iterdir()},
                         set(self.environments))

    def test_pins_are_those_of_the_requirements(self):
        for name, wanted in self.environments.items():
            pins = self.pins(name)
            asked = re.findall(r"(?m)^([\w.-]+)==(\S+)$", wanted.requirements)
            self.assertTrue(asked, name)
            for package, version in asked:
                held = [number for known, number in pins if known == normal(package)]
                self.assertTrue(held, f"{name}: no pin of {package}: run scripts/pins {name}")
                self.assertEqual(fnmatch.filter(held, version), held,
                                 f"{name}: another {package}: run scripts/pins {name}")

    def test_environments_beside_others_hold_the_same(self):
        for name, wanted in self.environments.items():
            if wanted.beside:
                missing = set(self.pins(wanted.beside)) - set(self.pins(name))
                self.assertEqual(missing, set(), f"run scripts/pins {name}")

    def test_scripts_install_from_pins_alone(self):
        found = 0
        for path in INSTALLERS:
            text = tree.text(path).replace("\\\n", " ")
            for call in re.findall(r"-m pip [^\n]*|\"-m\", \"pip\"[^\n]*", text):
                if "--version" not in call:
                    found += 1
                    self.assertRegex(call, r"\$\{pinned\[@\]\}|\*pinned\(", path)
        self.assertGreater(found, 7)


if __name__ == "__main__":
    unittest.main()
