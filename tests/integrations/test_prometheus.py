#!/usr/bin/env python3
"""The file for Prometheus is read by Prometheus' own parsers, with a hostile name of a program in a
label, and the dashboard for Grafana asks only for metrics and labels that are in it."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import beside

DASHBOARD = beside.SOURCE / "docs/recipes/grafana.json"
DOCUMENT = beside.SOURCE / "docs/recipes/integrations.md"
PROGRAM = """
import ctypes, os

runtime = ctypes.CDLL("libcudart.so.13")
address = ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(5 << 20)) == 0
print(os.getpid(), flush=True)
input()
"""
READ = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families

print(json.dumps([[family.name, family.type, family.documentation,
                   [[one.name, one.labels, one.value] for one in family.samples]]
                  for family in text_string_to_metric_families(sys.stdin.read())]))
"""
NAME = 'a "b" \\n {x=1}, \\\\ é.py'
# What Prometheus adds to each series.
ADDED = {"instance", "job"}


def exported(folder):
    """The text that `spillway top` writes of a running program called NAME, of rank 3, and the
    program's pid."""
    (folder / NAME).write_text(PROGRAM)
    program = subprocess.Popen([beside.COMMAND, "sim", "--memory", "1GiB", "--", sys.executable,
                                NAME], cwd=folder, env=beside.environment(RANK="3"), text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    with program:
        child = program.stdout.readline().strip()
        file = folder / "x.prom"
        done = subprocess.run([beside.COMMAND, "top", child, "--once", "--prometheus", file],
                              env=beside.environment(), capture_output=True, text=True)
        program.stdin.write("\n")
    assert done.returncode == 0, done.stderr
    return file.read_text(), child


class Prometheus(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.text, cls.pid = exported(pathlib.Path(folder))
        done = subprocess.run([beside.PYTHON, "-c", READ], input=cls.text, capture_output=True,
                              text=True, check=True)
        cls.families = json.loads(done.stdout)
        cls.samples = {name: (labels, value) for _, _, _, samples in cls.families
                       for name, labels, value in samples}

    def test_labels(self):
        labels, value = self.samples["spillway_live_bytes"]
        self.assertEqual(value, 5 << 20)
        process = labels["process"]
        self.assertTrue(process.endswith(" " + NAME), process)
        self.assertEqual(labels, {"device": "0", "pid": self.pid, "rank": "3", "mode": "auto",
                                  "simulated": "true", "process": process})
        for name, (labels, _) in self.samples.items():
            if name != "spillway_processes":
                self.assertEqual(labels["process"], process, name)

    def test_types(self):
        for name, kind, help_text, samples in self.families:
            self.assertIn(kind, ("counter", "gauge"), name)
            self.assertEqual(len(samples), 1, name)
            self.assertEqual(samples[0][0], name + "_total" * (kind == "counter"))
            self.assertGreater(len(help_text), 10, name)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not on PATH")
    def test_promtool(self):
        done = subprocess.run(["promtool", "check", "metrics"], input=self.text, text=True,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        rules = [{"record": f"r{number}", "expr": expression.replace("$__rate_interval", "1m")}
                 for number, (expression, _) in enumerate(self.queries())]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "all", "rules": rules}]}, file)  # JSON is YAML
            file.flush()
            done = subprocess.run(["promtool", "check", "rules", file.name], text=True,
                                  capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def queries(self):
        """Of the dashboard: each query, and the name that a series gets."""
        board = json.loads(DASHBOARD.read_text())
        return [(target["expr"], target["legendFormat"])
                for panel in board["panels"] for target in panel["targets"]]

    def test_dashboard(self):
        labels = set(self.samples["spillway_live_bytes"][0]) | ADDED
        board = json.loads(DASHBOARD.read_text())
        variables = {one["name"]: one["query"] for one in board["templating"]["list"]}
        queries = self.queries()
        self.assertEqual(len(board["panels"]), len({panel["id"] for panel in board["panels"]}))
        for text in [query for query, _ in queries] + [*variables.values()][1:]:
            self.assertLessEqual(set(re.findall(r"\bspillway_\w+", text)), set(self.samples), text)
            self.assertLessEqual(set(re.findall(r"(\w+)=~", text)), labels, text)
            self.assertRegex(text, r"\bspillway_\w+")
        for query, name in queries:
            self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", name)), labels)
            self.assertLessEqual(set(re.findall(r"\$(\w+)", query)),
                                 {*variables, "__rate_interval"})
            counters = re.findall(r"\b(rate|increase)?\(?(spillway_\w+)", query)
            for function, metric in counters:
                self.assertEqual(function != "", metric.endswith("_total"), query)
        for name, query in [*variables.items()][1:]:
            self.assertEqual(query.rpartition(" ")[2], f"{name})")

    def test_document(self):
        text = DOCUMENT.read_text().partition("## Prometheus")[2]
        named = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
        self.assertEqual({name for name in named if not name.startswith("spillway_")},
                         set(self.samples["spillway_live_bytes"][0]))


if __name__ == "__main__":
    beside.run_tests("prometheus_client")
