#!/usr/bin/env python3
"""Python call sites under fire, on every CPython of this machine.

    test_site_python_fire.py LIBRARY [--scenario NAME --seconds N]

With --scenario the one scenario runs for N seconds in all, otherwise each for a moment on each
interpreter. Exits with 77 where the library has a sanitizer in it, or no interpreter can run the
scenario.
"""
import argparse
import os
import subprocess
import sys
import unittest

if os.environ.get("BUILD_SANITIZED", "none") != "none":
    print("an object with a sanitizer cannot be loaded into an interpreter without")
    sys.exit(77)

from test_site_python import HERE, LIBRARY, interpreters
import site_python_fire

MOMENT = 0.3


def run(path, scenario, seconds):
    """The compared stacks; None where the interpreter cannot run the scenario."""
    done = subprocess.run([path, str(HERE / "site_python_fire.py"), str(LIBRARY), scenario,
                           str(seconds)], capture_output=True, text=True, timeout=300 + 2 * seconds,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8",
                               "PYTHONDONTWRITEBYTECODE": "1"})
    if done.returncode == 77:
        return None
    assert (done.returncode, done.stderr) == (0, ""), (path, scenario, done)
    return int(done.stdout)


class Fire(unittest.TestCase):
    scenarios, seconds = list(site_python_fire.SCENARIOS), None

    def test_scenarios(self):
        versions = sorted(interpreters().items())
        ran = 0
        for scenario in self.scenarios:
            for version, path in versions:
                with self.subTest(scenario=scenario, version=version):
                    count = run(path, scenario, self.seconds / len(versions) if self.seconds
                                else MOMENT)
                    if count is not None:
                        ran += 1
                        self.assertGreater(count, 0)
                        print(f"CPython {version}, {scenario}: {count} stacks as it says")
        if ran == 0:
            self.skipTest(f"no interpreter can run {self.scenarios}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--scenario", choices=site_python_fire.SCENARIOS)
    parser.add_argument("--seconds", type=float)
    words = parser.parse_args()
    if words.scenario is not None:
        Fire.scenarios, Fire.seconds = [words.scenario], words.seconds
    program = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False)
    result = program.result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
