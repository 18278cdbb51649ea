#!/usr/bin/env python3
"""The Python package `spillway` in programs with and without the object, on the simulated GPU."""
import html.parser
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402
from harness import MIB  # noqa: E402

PACKAGE = harness.SOURCE / "python"
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs.py"
# Another one than that which runs the tests, to find out what the package needs.
PYTHON = os.environ.get("SPILLWAY_TEST_PYTHON", sys.executable)
NOT_LOADED = "spillway: spillway is not loaded in this process"


class Frame(html.parser.HTMLParser):
    """The attributes of the frame in a notebook."""

    def handle_starttag(self, tag, attrs):
        self.tag, self.attributes = tag, dict(attrs)


@unittest.skipIf(harness.SANITIZED, "the interpreter is not built with the sanitizer")
class Package(harness.Case):
    def part(self, name, preload=True, allow=(), **options):
        """What a part of the program returned, and its output."""
        options["SIM_MEMORY"] = "1GiB"
        os.environ["PYTHONPATH"], os.environ["PAGE"] = str(PACKAGE), str(self.folder / "page.html")
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        result = self.run_program(PYTHON, PROGRAM, name, preload=preload, allow=allow, **options)
        *printed, last = result.stdout.splitlines()
        return json.loads(last)["result"], printed, result

    def frame(self, text):
        parser = Frame()
        parser.feed(text)
        self.assertEqual(parser.tag, "iframe")
        return parser.attributes

    def test_statistics(self):
        found, _, result = self.part("stats")
        self.assertTrue(found["loaded"])
        self.assertEqual(found["before"]["devices"], [])
        held, after = found["held"]["devices"][0], found["after"]["devices"][0]
        self.assertEqual((held["ordinal"], held["live_bytes"], held["live_peak_bytes"],
                          held["limit_bytes"]), (0, 5 * MIB, 8 * MIB, 1024 * MIB))
        self.assertEqual((after["live_bytes"], after["allocs"], after["frees"]), (0, 2, 2))
        self.assertEqual(found["held"]["mode"], result.stats["mode"])
        self.assertEqual(found["held"]["pid"], result.stats["pid"])
        calls, end = after.pop("driver_calls"), result.device()["driver_calls"]
        self.assertGreater(calls["cuMemCreate"], 0)
        self.assertEqual({name: end[name] >= count for name, count in calls.items()},
                         dict.fromkeys(calls, True))
        for name, value in after.items():  # the names and values of the file
            self.assertEqual(result.device()[name], value, name)
        others = set(result.device()) - set(after)
        self.assertEqual(others, {"driver_calls", "last_oom", "host_bound_name"})

    def test_several_devices(self):
        found, _, result = self.part("stats", SIM_DEVICES=3)
        self.assertEqual([device["ordinal"] for device in found["held"]["devices"]], [0, 1, 2])
        self.assertEqual(len(result.stats["devices"]), 3)

    def test_pauses(self):
        found, _, _ = self.part("pauses")
        self.assertTrue(found["done"])
        self.assertEqual(found["within"], [0, 64])
        self.assertEqual(found["after"], found["before"])
        self.assertEqual(found["before"][1], 0)

    def test_tags(self):
        found, _, result = self.part("tags")
        self.assertEqual(found["wrong"], ["", "x" * 64, "é" * 32, "a\nb", "a\0", "both"])
        self.assertEqual(found["done"], [False, False, True, True, True])
        self.assertEqual(found["moved"], [32, 64, 32, 0])
        allocs = {}
        for site in result.stats["sites"]:
            allocs[site.get("tag")] = allocs.get(site.get("tag"), 0) + site["allocs"]
        self.assertEqual(allocs, {"weights": 8, "kv cache é": 8, None: 5})

    def test_tags_without_sites(self):
        said = "tags have no effect, as call sites are not recorded"
        found, _, result = self.part("tags", SITES="off", allow=[said])
        self.assertEqual(found["done"], [False] * 5)
        self.assertEqual(result.stderr.count(said), 1, result.stderr)

    def test_without_the_object(self):
        for options in {"preload": False}, {"": "off"}:
            with self.subTest(options):
                done = subprocess.run(
                    [PYTHON, PROGRAM, "nothing"], capture_output=True, text=True,
                    env={**harness.environment(**options), "PYTHONPATH": str(PACKAGE),
                         "PYTHONDONTWRITEBYTECODE": "1"})
                self.assertEqual(done.returncode, 0, done.stderr)
                found = json.loads(done.stdout)["result"]
                self.assertEqual((found["report"], found["path"]), (False, None))
                self.assertIn("<p>spillway: ", found["html"])
                if "" in options:  # it is there, and inert
                    self.assertIn("there is no recording", done.stderr)
                    continue
                self.assertEqual((found["loaded"], found["stats"]), (False, {}))
                self.assertEqual(done.stderr.count(NOT_LOADED), 1, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_does_nothing_with_a_closed_stderr(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" 2>&-', PYTHON, PROGRAM, "nothing"],
                              capture_output=True, text=True,
                              env={**harness.environment(preload=False),
                                   "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(json.loads(done.stdout)["result"]["loaded"], False)

    def test_marks_are_in_the_recording(self):
        path = self.folder / "marked.rec"
        found, _, _ = self.part("marks", RECORD=path)
        self.assertEqual(found["null"], 1)
        shown = self.run_command([harness.COMMAND, "report", path, "--json"],
                                 harness.environment(False, False))
        figures = json.loads(shown.stdout)
        self.assertEqual(figures["steps"], 9)
        marks = {mark["name"]: mark for mark in figures["marks"]}
        self.assertEqual([*marks][:3], ["whole", "eval é", "failing"])
        self.assertEqual((marks["whole"]["count"], marks["eval é"]["count"]), (3, 9))
        (peak,) = marks["eval é"]["live_peak_bytes"]
        self.assertTrue(10 * MIB <= peak <= 20 * MIB, peak)
        self.assertGreaterEqual(marks["whole"]["ns"], marks["eval é"]["ns"])
        self.assertGreater(marks["eval é"]["ns"], 0)
        self.assertEqual(marks["failing"]["live_peak_bytes"], [0])
        self.assertEqual(figures["devices"][0]["live_peak_bytes"], 32 * MIB)
        self.assertEqual(len(marks), 5)
        text = self.run_command([harness.COMMAND, "report", path],
                                harness.environment(False, False))
        self.assertRegex(text.stdout, r"(?m)^ +9 +\d.\d+ s +(1\d|20) MiB  eval é$")
        self.assertRegex(text.stdout, r"(?m)^ +1 .*  open \(not ended\)$")
        self.assertNotIn("failing (not ended)", text.stdout)

    def test_report_of_the_running_program(self):
        path = self.folder / "run.rec"
        found, _, result = self.part("report", RECORD=path, allow=["no report: .*/no/such/file"])
        self.assertEqual(found["recording"], str(path))
        self.assertEqual(found["path"], f"{path}.html")
        self.assertEqual(found["again"], str(self.folder / "page.html"))
        first, again = self.frame(found["shown"]), self.frame(found["frame"])
        self.assertEqual(again["srcdoc"], (self.folder / "page.html").read_text())
        self.assertEqual(first["srcdoc"], pathlib.Path(found["path"]).read_text())
        self.assertIn("333px", again["style"])
        self.assertEqual(first["srcdoc"][:15], "<!doctype html>")
        self.assertIn(str(5 * MIB), first["srcdoc"])
        self.assertNotIn(str(12 * MIB), first["srcdoc"])
        self.assertIn(str(12 * MIB), again["srcdoc"])
        self.assertFalse(found["missing"][0])
        self.assertIn("/no/such/file", found["missing"][1])
        self.assertEqual(list(self.folder.glob(".*")), [])

    def test_report_without_a_recording(self):
        os.environ["PAGE"] = ""
        result = self.run_program(PYTHON, "-c", "import sys\n"
                                  f"sys.path.insert(0, {str(PACKAGE)!r})\nimport spillway\n"
                                  "print(spillway.report(), spillway.report())",
                                  allow=["there is no recording"])
        self.assertIn("<spillway.Report: there is no recording", result.stdout)
        self.assertEqual(len(result.said()), 1)

    def test_notebook(self):
        found, printed, _ = self.part("notebook", RECORD=self.folder / "nb.rec")
        self.assertTrue(pathlib.Path(found["report"]).exists())
        self.assertIn("no device memory is used yet", printed)
        self.assertRegex("\n".join(printed), r"live peak.*\n +0 +1.00 GiB +6.00 MiB +6.00 MiB")
        self.assertIn("%%spillway NAME    runs the cell as the marked part NAME", printed)
        _, printed, result = self.part("notebook", preload=False, allow=["is not loaded in this"])
        self.assertEqual(printed, ["spillway is not loaded"])
        self.assertEqual(result.stderr.count(NOT_LOADED), 1)

    def test_command(self):
        """python -m spillway is the command, with its exit code."""
        environment = {**harness.environment(), "PYTHONPATH": str(PACKAGE),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        version = self.run_command([PYTHON, "-m", "spillway", "--version"], environment)
        self.assertRegex(version.stdout, r"^spillway \d+\.\d+\.\d+\n$")
        bad = self.run_command([PYTHON, "-m", "spillway", "what"], environment)
        self.assertEqual(bad.status, 2)
        environment = {**harness.environment(False, False), "PATH": "/nowhere",
                       "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        missing = self.run_command([PYTHON, "-m", "spillway", "--version"], environment)
        self.assertEqual((missing.status, missing.stdout), (127, ""))
        self.assertIn("the command `spillway` is not found", missing.stderr)


if __name__ == "__main__":
    harness.main()
