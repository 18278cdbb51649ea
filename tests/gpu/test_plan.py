#!/usr/bin/env python3
"""The plan of gpu-check: what is packed into which call, what earlier pages settle, what rows cost,
and how pages are joined. Runs no row."""
import dataclasses
import inspect
import json
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import fingerprint  # noqa: E402
import page  # noqa: E402
import plan  # noqa: E402
from plan import Item  # noqa: E402
from rows import TABLE  # noqa: E402

FIRST, SECOND = list(TABLE)[:2]


def names(calls):
    return [[item.name for item in call.items] for call in calls]


def entry(name, result="ok", seconds=1.0, **more):
    return {"name": name, "what": "", "result": result, "seconds": seconds, "reason": "",
            "findings": [], "notes": [], "card": "A", "when": "2026-01-01T10:00:00"} | more


class Packing(unittest.TestCase):
    def pack(self, *items, bound=100, at_once=2):
        return plan.pack(items, (1, 2), bound, at_once)

    def test_the_first_call_with_room(self):
        calls, left_out = self.pack(Item("a", 60), Item("b", 50), Item("c", 40), Item("d", 50))
        self.assertEqual(names(calls), [["a", "c"], ["b", "d"]])
        self.assertEqual(left_out, [])

    def test_what_does_not_fit_is_left_out(self):
        """What is less important but short still has its place."""
        calls, left_out = self.pack(Item("a", 90), Item("b", 70), Item("c", 50), Item("d", 101),
                                    Item("e", 10))
        self.assertEqual(names(calls), [["a", "e"], ["b"]])
        self.assertEqual([(item.name, why) for item, why in left_out],
                         [("c", "what is before it leaves 10 s in call 1 and 30 s in call 2"),
                          ("d", "what is before it leaves 10 s in call 1 and 30 s in call 2")])

    def test_rows_beside_share_their_time(self):
        calls, _ = self.pack(*(Item(name, 50, beside=True) for name in "abcd"), Item("e", 1))
        self.assertEqual(names(calls), [["a", "b", "c", "d"], ["e"]])
        self.assertEqual([call.seconds(2) for call in calls], [100, 1])

    def test_rows_beside_stand_where_the_first_does(self):
        items = [Item("a", 1), Item("b", 1, True), Item("c", 1), Item("d", 1, True)]
        self.assertEqual([([item.name for item in some], beside)
                          for some, beside in plan.groups(items)],
                         [(["a"], False), (["b", "d"], True), (["c"], False)])

    def test_lanes(self):
        """In order: the third begins where the first lane gets free."""
        self.assertEqual(plan.lanes([3, 5, 4], 2), 7)
        self.assertEqual(plan.lanes([], 2), 0)

    def test_time_that_is_left(self):
        """After its own rows a call runs those of the next call, then those that were left out."""
        calls, left_out = self.pack(Item("a", 90), Item("b", 90), Item("c", 90), bound=90)
        made = plan.Plan(calls, left_out, [])
        self.assertEqual([[item.name for item in some] for some in made.items_from(1)],
                         [["a"], ["b", "c"]])
        self.assertEqual([[item.name for item in some] for some in made.items_from(2)],
                         [["b"], ["c"]])

    def test_the_real_table(self):
        """No call takes longer than it may, and every row has its place."""
        made = plan.make([], [], {})
        for call in made.calls:
            self.assertLessEqual(call.seconds(), plan.ROOM)
        self.assertEqual(sorted(sum(names(made.calls), [item.name for item, _ in made.left_out])),
                         sorted(TABLE))
        self.assertEqual(made.calls[0].items[0].name, FIRST)
        text = plan.text(made)
        for name in TABLE:
            self.assertRegex(text, rf"(?m)^ +(\d+ +)?{name} +~\d+ s ")


class Costs(unittest.TestCase):
    def cost(self, *entries):
        return plan.expected(TABLE[FIRST], entries)

    def test_the_estimate(self):
        self.assertEqual(self.cost(), (TABLE[FIRST].cost, ""))

    def test_the_newest_page(self):
        both = [entry(FIRST, seconds=7.2, when="2026-01-02"), entry(FIRST, seconds=3.0)]
        for entries in (both, both[::-1]):
            self.assertEqual(self.cost(*entries), (8, "A, 2026-01-02"))

    def test_a_row_that_was_cut(self):
        more = TABLE[FIRST].cost + 100
        self.assertEqual(self.cost(entry(FIRST, "not run", 3.0)), (TABLE[FIRST].cost, ""))
        self.assertEqual(self.cost(entry(FIRST, "not run", more)), (more, ""))


class Settled(unittest.TestCase):
    def make(self, *after, old=()):
        return plan.make(old, after, {name: f"code of {name}" for name in TABLE})

    def planned(self, made):
        return {item.name for call in made.calls for item in call.items} | {
            item.name for item, _ in made.left_out}

    def test_the_same_code(self):
        made = self.make(entry(FIRST, "WRONG", code=f"code of {FIRST}"))
        self.assertNotIn(FIRST, self.planned(made))
        self.assertEqual(made.settled, [(FIRST, "WRONG, A, 2026-01-01")])
        self.assertIn(f"{FIRST} ", plan.text(made).partition("settled:")[2])

    def test_what_settles_nothing(self):
        """Other code, no code, and rows that came to no end."""
        for one in (entry(FIRST, code="other"), entry(FIRST),
                    entry(FIRST, "not run", code=f"code of {FIRST}"),
                    entry(FIRST, "began", code=f"code of {FIRST}")):
            self.assertIn(FIRST, self.planned(self.make(one)), one)

    def test_pages_that_tell_costs_alone(self):
        made = self.make(old=[entry(FIRST, seconds=9.0, code=f"code of {FIRST}")])
        item = made.calls[0].items[0]
        self.assertEqual((item.name, item.seconds), (FIRST, 9))


class Fingerprints(unittest.TestCase):
    def test_what_a_row_depends_on(self):
        """Every word is a name or a path of files; no simulator is among them."""
        for row in TABLE.values():
            for word in row.depends:
                self.assertTrue(word in fingerprint.CODE or fingerprint.files(
                    dataclasses.replace(row, depends=(word,))), f"{row.name}: {word}")
        files = [str(path.relative_to(fingerprint.SOURCE))
                 for path in fingerprint.files(TABLE["spill"])]
        self.assertIn("src/preload.c", files)
        self.assertFalse([name for name in files if name.startswith(("src/sim", "src/cli"))])
        self.assertTrue([path for path in fingerprint.files(TABLE["doctor"])
                         if path.is_relative_to(fingerprint.SOURCE / "src/cli")])

    def test_rows_of_the_probe(self):
        """Such a row depends on the files that have its sections, on what these include and on what
        all share, but on no other section."""
        probe = fingerprint.SOURCE / "tests/gpu/probe"
        has = {path: set(re.findall(r"(?m)^void section_(\w+)\(", path.read_text()))
               for path in probe.glob("*.c")}
        for row in TABLE.values():
            used = {name.replace("-", "_") for name in re.findall(
                r'session\.probe\("([\w-]+)"', inspect.getsource(row.function))}
            files = set(fingerprint.files(row))
            self.assertEqual({path for path, sections in has.items() if sections & used},
                             files & {path for path in has if has[path]}, row.name)
            self.assertLessEqual({path for path in has if used and not has[path]} - files,
                                 {probe / "main.c"})
            for path in files if used else ():
                for name in re.findall(r'#include "([\w/]+\.h)"', path.read_text()):
                    self.assertTrue(name == "sections.h" or {
                        probe / name, fingerprint.SOURCE / "src" / name} & files,
                        f"{row.name}: {path.name} includes {name}")

    def test_it_is_of_the_content(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder)
            (source / "one").write_text("1")
            row = dataclasses.replace(TABLE["tiers"], depends=("one",))
            first = fingerprint.of(row, source)
            self.assertEqual(fingerprint.of(row, source), first)
            (source / "one").write_text("2")
            fingerprint.content.cache_clear()
            self.assertNotEqual(fingerprint.of(row, source), first)

    def test_rows_differ(self):
        self.assertEqual(len(set(fingerprint.of_tree().values())), len(TABLE))

    def test_those_of_the_bundle(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, fingerprint.FILE)
            path.parent.mkdir()
            path.write_text('{"tiers": "0"}')
            self.assertEqual(fingerprint.of_root(folder), {"tiers": "0"})
            self.assertEqual(fingerprint.of_root(pathlib.Path(folder, "none")),
                             fingerprint.of_tree())


class Pages(unittest.TestCase):
    FACTS = {"gpu": "A", "date": "2026-01-01", "kernel": "1"}
    ROWS = [entry(FIRST, code="12ab"), entry(SECOND, "not run", 4.0, code="34cd")]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_page_says_what_its_rows_say(self):
        """A plan is the same after page.md and after rows.json."""
        page.write(self.folder, self.FACTS, self.ROWS)
        for path in (self.folder, self.folder / "rows.json", self.folder / "page.md"):
            facts, rows = page.load(path)
            self.assertEqual(facts["gpu"], "A")
            self.assertEqual([{key: row.get(key) for key in
                               ("name", "result", "seconds", "code", "card", "when")}
                              for row in rows],
                             [{key: row[key] for key in
                               ("name", "result", "seconds", "code", "card", "when")}
                              for row in self.ROWS], path)

    def test_pages_without_fingerprints(self):
        """The committed ones can be read, and tell seconds."""
        for path in (HERE / "results").glob("*gb.md"):
            facts, rows = page.load(path)
            self.assertGreater(len(rows), 30, path)
            self.assertTrue(all(row["card"] and row["when"] for row in rows))

    def test_what_is_no_page(self):
        for name, content in (("a.md", "# Title\n"), ("b.json", "{"), ("c.json", '{"rows": []}')):
            (self.folder / name).write_text(content)
            with self.assertRaisesRegex(page.Unreadable, name):
                page.load(self.folder / name)
        with self.assertRaisesRegex(page.Unreadable, "nowhere"):
            page.load(self.folder / "nowhere")
        with self.assertRaisesRegex(page.Unreadable, "rows.json or page.md is expected"):
            page.load(self.folder)

    def join(self, *pages):
        facts, rows = page.join(pages)
        return facts, {(row["name"], row["card"]): row for row in rows}

    def test_the_newest_that_ended(self):
        old = entry(FIRST, seconds=1.0)
        cut = entry(FIRST, "not run", when="2026-01-03T10:00:00")
        new = entry(FIRST, "WRONG", when="2026-01-02T10:00:00")
        for rows in ((old, cut, new), (new, cut, old), (cut, new, old)):
            _, found = self.join(*((self.FACTS, [row]) for row in rows))
            self.assertEqual(found, {(FIRST, "A"): new})

    def test_two_cards(self):
        """Both results stay, and the page says which is of which card and day."""
        other = entry(FIRST, "WRONG", card="B", when="2026-01-02T10:00:00")
        facts, found = self.join((self.FACTS, [self.ROWS[0]]),
                                 ({"gpu": "B", "date": "2026-01-02", "kernel": "2"}, [other]))
        self.assertEqual(set(found), {(FIRST, "A"), (FIRST, "B")})
        self.assertEqual(facts, {"gpu": "A and B", "date": "2026-01-02", "kernel": "1",
                                 "kernel of B": "2"})
        text = page.markdown(facts, found.values())
        self.assertRegex(text, rf"\| {FIRST} \| ok \| 1.0 \| A, 2026-01-01; ")
        self.assertRegex(text, rf"\| {FIRST} \| WRONG \| 1.0 \| B, 2026-01-02; ")
        page.write(self.folder, facts, list(found.values()))
        for name in ("page.md", "rows.json"):
            again = page.load(self.folder / name)[1]
            self.assertEqual([(row["result"], row["card"]) for row in again],
                             [("ok", "A"), ("WRONG", "B")])

    def test_rows_json_of_before(self):
        """Rows without a card and a time are those of their page."""
        rows = [{key: value for key, value in row.items() if key not in ("card", "when", "code")}
                for row in self.ROWS]
        (self.folder / "rows.json").write_text(json.dumps({"facts": self.FACTS, "rows": rows}))
        self.assertEqual({(row["card"], row["when"]) for row in page.load(self.folder)[1]},
                         {("A", "2026-01-01")})


if __name__ == "__main__":
    unittest.main()
