#!/usr/bin/env python3
"""PyTorch's graphs: the nodes of a captured pass can be read, so that the state of an optimizer
outside of it goes to the host when memory is short; and what makes graphs works in which mode.

Exits with 77 when there is no PyTorch that will do.
"""
import json
import pathlib
import sys
import tempfile
import unittest

import wheel
from running import HERE, Run

SCRIPT = HERE / "graph_beside.py"
LIMIT = 320 << 20
ROOM = 256 << 20  # for code and the memory that the driver gives to the graph
STATE = {"version": 1, "rules": [
    {"name": "state", "match": {"python": {"file": "*/optim/adam*.py"}}, "action": {}}]}


class Graphs(unittest.TestCase):
    interpreter = None

    def run_script(self, mode, *flags):
        with tempfile.TemporaryDirectory() as folder:
            policy = pathlib.Path(folder, "policy.json")
            policy.write_text(json.dumps(STATE))
            run = Run([self.interpreter, str(SCRIPT)],
                      ["--seed", "1", "--log", "info", "--mode", mode, "--policy", str(policy),
                       *flags], {})
        self.assertEqual(run.status, 0, run.stderr)
        self.assertNotIn("nodes of a CUDA graph cannot be read", run.stderr)
        return run.stats["0"]

    def test_state_outside_of_the_graph_moves(self):
        plenty = self.run_script("tensor")
        self.assertGreater(plenty["devices"][0]["live_peak_bytes"], LIMIT)
        self.assertEqual(plenty["devices"][0]["moves"], 0)
        short = self.run_script("tensor", "--limit", str(LIMIT), "--memory", str(LIMIT + ROOM))
        state = short["rules"][0]
        print(f"{state['spilled_bytes'] >> 20} MiB of {state['live_peak_bytes'] >> 20} MiB of the "
              "optimizer's state went to the host")
        self.assertGreater(state["spilled_bytes"], 0)

    def run_graphs(self, script, flags, **settings):
        return Run([self.interpreter, str(HERE / script)],
                   ["--seed", "1", "--memory", "2GiB", *flags], settings)

    def check_graphs(self, script, modes, last):
        """The script ends in these modes, and nothing is on stderr that a plain run does not say
        as well."""
        plain = self.run_graphs(script, ["--no-pool"])
        self.assertEqual(plain.status, 0, plain.stderr)
        for mode, settings in modes:
            with self.subTest(mode, settings=settings):
                run = self.run_graphs(script, ["--mode", mode], **settings)
                self.assertEqual(run.status, 0, run.stderr)
                self.assertIn(last, run.stdout)
                self.assertEqual(set(run.unexpected()) - set(plain.unexpected()), set())

    def test_graphed_callables(self):
        modes = (("tensor", {}), ("segment", {}))
        self.check_graphs("graphed_callables.py", modes, "step 3")

    def test_graph_trees(self):
        reason = wheel.why_not_triton(self.interpreter)
        if reason is not None:
            self.skipTest(reason)
        expandable = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
        modes = (("tensor", {}), ("tensor", expandable), ("segment", {}))
        self.check_graphs("graph_trees.py", modes, "step 5")


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Graphs))
