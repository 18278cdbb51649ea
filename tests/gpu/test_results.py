#!/usr/bin/env python3
"""scripts/gpu-results: what follows from a page; and the readers of what rows' scripts tell."""
import contextlib
import ctypes
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "scripts")]
import claims  # noqa: E402
import costs  # noqa: E402
import cudnn_log  # noqa: E402
import gpu_results  # noqa: E402
import page  # noqa: E402
import reading  # noqa: E402
import tables  # noqa: E402
from rows import features, steps, told  # noqa: E402
from session import Run  # noqa: E402

COMMITTED = HERE / "results/h100-80gb.md"
FACTS = {"gpu": "a card", "date": "2026-11-28", "kernel": "6.1, a machine: with | words"}


def row(name, *findings, **more):
    return {"name": name, "what": "what", "result": "ok", "seconds": 1.5, "reason": "", "notes": [],
            "findings": [{"state": "figure", "subject": subject, "value": value}
                         for subject, value in findings], **more}


def measured():
    """Rows with all that a table of costs needs."""
    tiers = ("device", "host")
    return [
        row("move-cost", *((f"256 x 2 MiB to the {tier}: create", "2.56 ms") for tier in tiers)),
        row("range-cost", *((f"{tier}, {count} chunks: {call}", f"{count * 2} us")
                            for tier in tiers for count in (1, 100)
                            for call in ("map each", "set access once", "unmap once"))),
        row("call-cost", *((f"{tier} chunk of {mib} MiB: {call}", f"{mib}e+03 ns")
                           for tier in tiers for mib in (2, 12)
                           for call in costs.FUNCTIONS.values())),
        row("spill", ("plain: step time: 100.0 ms (median of 8)", ""),
            ("90 %: step", "130 ms, 1.300 of the plain one"))]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def page(self, rows):
        page.write(self.folder, FACTS, rows)
        return reading.read(self.folder)

    def run_it(self, *words):
        """(exit status, stdout, stderr) of scripts/gpu-results."""
        done = subprocess.run([HERE.parents[1] / "scripts/gpu-results", *words], text=True,
                              capture_output=True, cwd=self.folder)
        return done.returncode, done.stdout, done.stderr


class Reading(Case):
    def test_markdown_says_the_same_as_json(self):
        of_json = self.page(measured())
        of_markdown = reading.read(self.folder / "page.md")
        self.assertEqual(of_markdown.facts["gpu"], "a card")
        self.assertEqual(list(of_json.rows), list(of_markdown.rows))
        for name, one in of_json.rows.items():
            self.assertEqual(one["findings"], of_markdown.rows[name]["findings"])
            self.assertEqual(one["result"], of_markdown.rows[name]["result"])

    def test_pages_that_cannot_be_read(self):
        page.write(self.folder, FACTS | {"simulated": True}, measured())
        (self.folder / "empty").mkdir()
        for name, text in (("half.json", '{"facts": {}, "rows": [{"na'), ("other.json", "[]"),
                           ("cut.json", '{"facts": {"gpu": "x"}, "rows": [{"name": "x"}]}'),
                           ("empty.json", '{"facts": {}, "rows": []}'), ("empty.md", ""),
                           ("other.md", "# A title\n\ntext\n")):
            (self.folder / name).write_text(text)
        for words, says in (((".",), "rehearsal"), (("half.json",), "no page"),
                            (("other.json",), "no page"), (("cut.json",), "no rows"),
                            (("empty.json",), "no page"), (("empty.md",), "no page"),
                            (("other.md",), "no page"), (("none.json",), "no page"),
                            (("none.md",), "No such file"), (("empty",), "a folder with"),
                            (("page.md", "--card", "x"), "rehearsal"),
                            (("page.md",), "rehearsal"), (("page.md", "--nothing"), "--nothing"),
                            ((COMMITTED, "--costs", "H/100"), "--costs H/100")):
            with self.subTest(words):
                status, out, err = self.run_it(*words)
                self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(says, err)

    def test_a_page_of_two_cards(self):
        rows = [row("link", ("a", f"{number} GB/s"), ("b", "1 GB/s"), card=card,
                    when="2026-11-28T10:00") for number, card in ((1, "A"), (2, "B"))]
        page.write(self.folder, FACTS, rows)
        for name in ("rows.json", "page.md"):
            self.assertEqual(reading.read(self.folder / name, "A").value("link", "a"), "1 GB/s")
            self.assertEqual(reading.read(self.folder / name, "B").value("link", "a"), "2 GB/s")
            status, _, err = self.run_it(name)
            self.assertEqual(status, 2)
            self.assertIn("--card with one of 'A', 'B' is expected", err)

    def test_a_page_without_the_rows(self):
        self.page(measured()[:2])
        status, out, err = self.run_it(".", "--costs", "new")
        self.assertEqual((status, out), (2, ""))
        self.assertRegex(err, r"^scripts/gpu-results: \S+: row call-cost has no chunks.*\n$")


class Costs(Case):
    def test_table(self):
        text = costs.table(self.page(measured()), "new")
        self.assertIn("SIM_COST_TIERS(cuMemCreate, 10000, 1000, 10000, 1000)\n", text)
        self.assertIn("SIM_COST_TIERS(cuMemSetAccess, 2000, 1000, 2000, 1000)\n", text)
        self.assertIn("SIM_COST_TIERS(cuMemRelease, 2000, 1000, 2000, 1000)\n", text)

    def test_two_digits(self):
        self.assertEqual([costs.rounded(ns * 1e-9) for ns in (0, 0.4, 7.4, 66.6, 1234, 685547)],
                         [0, 0, 7, 67, 1200, 690000])

    def test_committed(self):
        """The simulator's costs are those of the committed page."""
        self.assertEqual(self.run_it(COMMITTED, "--costs", "h100", "--check"), (0, "", ""))

    def test_written(self):
        (self.folder / gpu_results.COSTS).mkdir(parents=True)
        found, out = self.page(measured()), io.StringIO()
        with mock.patch.object(claims, "SOURCE", self.folder), contextlib.redirect_stdout(out):
            self.assertEqual(gpu_results.write_costs(found, "new", check=True), 1)
            self.assertEqual(list((self.folder / gpu_results.COSTS).iterdir()), [])
            self.assertEqual(gpu_results.write_costs(found, "new", check=False), 0)
            self.assertEqual(gpu_results.write_costs(found, "new", check=True), 0)
        self.assertEqual((self.folder / gpu_results.COSTS / "costs_new.def").read_text(),
                         costs.table(found, "new"))
        self.assertIn("option_words.def", out.getvalue())


class Tables(Case):
    def test_of_findings(self):
        found = self.page(measured())
        self.assertEqual(tables.of(found, "spilling")[1],
                         [("plain", "100.0 ms", "1.00"), ("90 %", "130.0 ms", "1.30")])
        self.assertEqual(tables.of(found, "chunks")[1][0],
                         ("device, one of many of 2 MiB", "10 us", "2 us", "2 us", "2 us", "2 us"))
        self.assertEqual(tables.of(found, "products")[1], [])

    def test_of_data(self):
        steps_ = [{"step": i, "length": 8, "step_ms": 10.0 * i, "driver": {}, "moves": i}
                  for i in (1, 2, 3, 4)]
        found = self.page([
            row("spill-short-90", data={"all memory": steps_, "safe": steps_}),
            row("varying-lengths", data={"plain": steps_, "under spillway": [
                step | {"step_ms": 20.0 * step["step"]} for step in steps_]}),
            row("cost-table", data={"products": [
                {"kind": "bf16", "m": 1000, "n": 1000, "k": 1000, "us": 4.0}]}),
            row("cost-curves", data={"launch_of_an_empty_kernel_us": 4.5, "memset_16_kib_us": 3.0,
                                     "memset_4_kib_us": 2.25}),
            row("both-ways-small", data={"out_alone_gb_s": 50.5}),
            row("in-place-torch", data={"operations": [
                {"operation": "GELU", "on_host": ["input"], "device_us": 10.0, "host_us": 70.0,
                 "once_us": 20.0}]})])
        self.assertEqual(tables.of(found, "steps")[1][1],
                         ("90 %", "safe", "35.0", "0.0", "0.00", "0.00", "0.00", "3.5"))
        self.assertEqual(tables.of(found, "varying")[1][1], ("under spillway", "2.00", "2.00", 4))
        self.assertEqual(tables.of(found, "products"), (
            ("product", "bf16"), [("1000 x 1000 x 1000", "500")]))
        self.assertEqual(tables.of(found, "launches")[1],
                         [("launch of an empty kernel", "4.5 us")])
        self.assertEqual(tables.of(found, "curves"),
                         (("operation", "4 KiB", "16 KiB"), [("memset", "2.25", "3")]))
        self.assertEqual(tables.of(found, "both-ways-small")[1], [("out alone", "50.5 GB/s")])
        self.assertEqual(tables.of(found, "in-place-torch")[1],
                         [("GELU", "input", "10.0", "70.0", "3.00")])
        status, out, _ = self.run_it(".", "--tables")
        self.assertEqual((status, out.count("<!-- generated: page ")), (0, 7))

    def test_data_of_another_kind(self):
        self.page([row("cost-table", data={"products": [{"kind": "bf16"}]})])
        status, _, err = self.run_it(".", "--tables")
        self.assertEqual((status, err.count("\n")), (2, 1))
        self.assertIn("table products", err)


class Claims(Case):
    def documents(self):
        """Copies of the documents that claims are in."""
        for name in {claim.document for claim in claims.CLAIMS}:
            copy = self.folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text((claims.SOURCE / name).read_text())
        return self.folder

    def test_committed(self):
        """The documents say what the committed page says, and each claim is looked up in it."""
        self.assertEqual(claims.check(reading.read(COMMITTED)), ([], [], 0))
        status, out, err = self.run_it(COMMITTED)
        self.assertEqual((status, err), (0, ""))
        self.assertIn(f"{len(claims.CLAIMS)} claims: 0 contradicted", out)

    def test_a_page_that_says_otherwise(self):
        found = self.page([
            row("spill", ("90 %: step", "130 ms, 1.300 of the plain one")),
            row("read-only", ("a kernel writes to read-only memory", "CUDA_SUCCESS"))])
        wrong, stale, silent = claims.check(found)
        self.assertEqual(stale, [])
        self.assertEqual(silent, len(claims.CLAIMS) - 4)
        self.assertEqual(len(wrong), 4)
        where = {line.partition(":")[0]: line for line in wrong}
        self.assertRegex(where["README.md"], r"^README.md:\d+: says 2.84, the page says 1.3 ")
        number = int(where["README.md"].split(":")[1])
        self.assertIn("2.84", (claims.SOURCE / "README.md").read_text().splitlines()[number - 1])
        self.assertTrue(any("says yes, the page says CUDA_SUCCESS" in line for line in wrong))
        self.assertEqual(self.run_it(".")[0], 1)

    def test_a_document_that_says_otherwise(self):
        folder = self.documents()
        readme = folder / "README.md"
        changed, count = re.subn(r"2\.84(?=\s+times)", "2.48", readme.read_text())
        self.assertEqual(count, 1)
        readme.write_text(changed)
        wrong, stale, _ = claims.check(reading.read(COMMITTED), folder)
        self.assertEqual((len(wrong), stale), (1, []))
        self.assertIn("says 2.48, the page says 2.837", wrong[0])

    def test_a_document_that_says_nothing(self):
        folder = self.documents()
        (folder / "docs/guide/pausing.md").write_text("# Pausing\n")
        wrong, stale, _ = claims.check(reading.read(COMMITTED), folder)
        self.assertEqual((wrong, len(stale)), ([], 1))
        self.assertRegex(stale[0], r"^docs/guide/pausing.md: .*out of date$")


class Told(unittest.TestCase):
    """What scripts of rows say."""

    def test_entries(self):
        text = ('data: {"what": "a", "x": 1}\nother\ndata: {"what": "a", "x": 2}\n'
                'data: {"x": 3}\ndata: 7\ndata: {"what": "b", "x"')
        self.assertEqual(told.entries(Run(0, text, "", None, 1.0)), {"a": [{"x": 1}, {"x": 2}]})

    def test_memory_calls(self):
        self.assertEqual(steps.memory_calls({"driver": {
            "cuMemMap": 2, "cuMemCreate": 1, "cuMemcpyAsync": 4, "cuMemsetD8Async": 8,
            "cuEventRecord": 16}}), 3)

    def test_every_overlap_has_its_run(self):
        self.assertLessEqual({"safe", "guarded", "off"}, set(steps.overlaps()))

    def test_features_that_are_lost(self):
        """Those that did not run both ways are left out."""
        runs, session = mock.Mock(LOSE_NOTHING=(features.MODE,)), mock.Mock()
        runs.verdict = lambda name, mode, bare, pool: "same" if bare == pool else "figures: x"
        said = features.verdicts(runs, {"a": 1, "b": 1, "late": 1}, {"a": 1, "b": 2})
        self.assertEqual(said, {"a": "same", "b": "figures: x"})
        features.report(session, runs, ["a", "b", "late"], said)
        session.failed.assert_called_once_with("lost: b", "figures: x")
        session.ok.assert_called_once_with("the same under spillway",
                                           "1 of 2 that ran, of 3")

    def test_messages_of_cudnn(self):
        """The form is that of cuDNN 9.19: lines that end with a zero, and an empty one."""
        lines = ("CuDNN (v91900 56) function cudnnBackendFinalize() called:",
                 "    descriptor: type=CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:",
                 "        engcfg: type=CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:",
                 "                engine_id: type=int; val=38;")
        buffer = ctypes.create_string_buffer("\0".join(lines).encode() + b"\0\0rest")
        text = cudnn_log.message(ctypes.addressof(buffer))
        self.assertEqual(text.splitlines(), list(lines))
        self.assertEqual(cudnn_log.engine_of(text), 38)
        self.assertIsNone(cudnn_log.engine_of(text.replace("Finalize", "GetAttribute")))
        self.assertIsNone(cudnn_log.engine_of(text.replace("EXECUTION_PLAN", "ENGINECFG")))


if __name__ == "__main__":
    unittest.main()
