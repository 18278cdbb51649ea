#!/usr/bin/env python3
"""What PyTorch can do without spillway, it can do with it, with the same figures.

    test_features.py [--every-mode | --modes M,M] [--each MINOR] [--fresh] [--results] [NAME...]

  --every-mode  all modes, and features that take long. Without it the modes in which nothing may be
                lost (feature_runs.py); in the others the test only finds out what is lost.
  --each MINOR  with the PyTorch of .venv-each/ (each.py), such as 2.6; what fails bare is no loss
  --fresh       each feature in a new process, not in a copy of one
  --results     keeps what became of each feature for docs/dev/results/pytorch-features.md
                (feature_results.py)

Exits with 77 when there is no PyTorch that will do.
"""
import argparse
import collections
import os
import sys
import unittest

import each
import feature_results
import feature_runs
import features
import wheel


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every-mode", action="store_true")
    parser.add_argument("--modes", type=lambda text: tuple(text.split(",")))
    parser.add_argument("--each", choices=each.WHEELS, metavar="MINOR")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--results", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in features.catalogue()]
    if unknown:
        parser.error(f"no feature is called {unknown[0]}: tests/torch/features/ has them")
    return options


def use(minor):
    """The PyTorch of .venv-each/; why not, or None."""
    os.environ["SPILLWAY_TEST_TORCH"] = str(each.interpreter(minor))
    found = wheel.versions(os.environ["SPILLWAY_TEST_TORCH"])
    if isinstance(found, str):
        return f"skipped: {found}: scripts/setup --torch-each={minor} gets one where it can"
    return None


class Features(unittest.TestCase):
    interpreter = None
    options = None

    def chosen_modes(self):
        if self.options.modes:
            return self.options.modes
        return feature_runs.modes() if self.options.every_mode else feature_runs.LOSE_NOTHING

    def names(self):
        if self.options.names:
            return self.options.names
        reason = wheel.why_not_triton(self.interpreter)
        if reason is not None:
            print(reason)
        return [name for name, one in features.catalogue().items()
                if (reason is None or not one.triton)
                and (self.options.every_mode or not one.long)]

    def test_features(self):
        names, chosen = self.names(), self.chosen_modes()
        runs = feature_runs.run_modes(self.interpreter, dict.fromkeys([feature_runs.BARE, *chosen]),
                                      names, self.options.fresh)
        bare = runs[feature_runs.BARE]
        found = {mode: {name: feature_runs.verdict(name, mode, bare[name], runs[mode][name])
                        for name in names} for mode in chosen}
        if self.options.results:
            version, cuda, python = wheel.versions(self.interpreter)
            feature_results.save(feature_results.row(
                {"version": version.partition("+")[0], "cuda": cuda, "python": python}, names,
                found))
        for mode, verdicts in found.items():
            with self.subTest(mode):
                kinds = collections.Counter(text.partition(":")[0] for text in verdicts.values())
                print(f"\n{mode}: {dict(kinds)}")
                strict = not self.options.each
                lost = {name: feature_runs.explain(name, bare[name], runs[mode][name], text)
                        for name, text in verdicts.items() if feature_runs.is_loss(text, strict)}
                print("\n".join(lost.values()), flush=True)
                if mode in (*feature_runs.LOSE_NOTHING, feature_runs.BARE):
                    self.assertEqual([*lost], [])


if __name__ == "__main__":
    Features.options = arguments()
    why = Features.options.each and use(Features.options.each)
    if why:
        print(why)
        sys.exit(77)
    sys.exit(wheel.run_tests(Features))
