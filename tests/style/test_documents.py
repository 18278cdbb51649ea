#!/usr/bin/env python3
"""Documents are true: generated parts are current, named paths exist, lists are complete."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import tree
from house import shape

BUILD = pathlib.Path(os.environ["BUILD_ROOT"])
CUDA = os.environ["BUILD_CUDA_HEADERS"]
PLAN = BUILD / "meson-info/intro-install_plan.json"
DOCUMENTS = [path for path in tree.files() if path.suffix == ".md"]
PAGES = [path for path in DOCUMENTS if path.parts[0] == "docs"]
PAGE = re.compile(r"(?<![\w./-])docs/[\w./-]*\w")


def headings(page):
    """The names that links to the headings of a page have."""
    found = re.findall(r"(?m)^#+ (.*)", tree.text(page)) if (tree.ROOT / page).exists() else []
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in found}


class Documents(unittest.TestCase):
    maxDiff = None

    @unittest.skipUnless((BUILD / "spillway").exists(), "the command is not built")
    def test_generated_documents_are_current(self):
        """Options, statistics, profiles, results, the map, the manual page, the completions."""
        done = subprocess.run([tree.ROOT / "scripts/docs", "--check"], capture_output=True,
                              text=True, env={**os.environ, "BUILD": str(BUILD)})
        self.assertEqual((done.returncode, done.stdout), (0, ""), "run scripts/docs" + done.stderr)

    def test_readme_is_a_front_door(self):
        lines = tree.text(pathlib.PurePath("README.md")).splitlines()
        self.assertLessEqual(len(lines), 100)
        self.assertLessEqual(max(map(len, lines)), 100)

    def test_quoted_messages_exist(self):
        """The first column of the tables in troubleshooting.md quotes messages of the sources."""
        string = r'"((?:\\.|[^"\\\n])*)"'
        strings = "\n".join("".join(re.findall(string, match.group()))
                            for path in (*tree.matching("src", ".c", ".h"),
                                         *tree.matching("python", ".py"))
                            for match in re.finditer(rf"{string}(\s*{string})*", tree.text(path)))
        text = tree.text(pathlib.PurePath("docs/guide/troubleshooting.md"))
        quoted = [quote for row in re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
                  for quote in re.findall(r"`([^`]*)`", row)
                  if " " in quote]
        self.assertGreater(len(quoted), 15)
        missing = [part for quote in quoted for part in map(str.strip, quote.split("..."))
                   if part and part not in strings]
        self.assertEqual(missing, [])

    def test_bash_completion_answers(self):
        script = ("source docs/completions/spillway; COMP_WORDS=(spillway sim --prof); "
                  'COMP_CWORD=2; _spillway; echo "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script], cwd=tree.ROOT, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("--profile\n", ""))

    def test_paths_exist(self):
        """Paths of the tree, in backticks or links, that the documents name. What the scripts make
        need not be there. Folders begin with a small letter, unlike the classes in GPT/Block."""
        ignored = tuple(line.strip("/") + "/"
                        for line in tree.text(pathlib.PurePath(".gitignore")).split())
        wrong = []
        for document in DOCUMENTS:
            named = re.findall(r"`((?![A-Z])(?:\.?[\w-]+/)+[\w.*-]*)`|\]\(([\w./-]+)(#[\w-]+)?\)",
                               tree.text(document))
            for quoted, linked, _ in named:
                path = quoted or linked
                if path.startswith(ignored):
                    continue
                here = (tree.ROOT / document).parent
                if not (list(tree.ROOT.glob(path.rstrip("/"))) or list(here.glob(path))):
                    wrong.append(f"{document}: {path}")
        self.assertEqual(wrong, [])

    def test_links_lead_to_headings(self):
        wrong = []
        for document in DOCUMENTS:
            for path, heading in re.findall(r"\]\(([\w./-]*)#([^)]+)\)", tree.text(document)):
                target = document.parent / path if path else document
                if heading not in headings(pathlib.PurePath(os.path.normpath(target))):
                    wrong.append(f"{document}: {path}#{heading}")
        self.assertEqual(wrong, [])

    def test_pages_named_anywhere_exist(self):
        """Sources, scripts, tests and messages name pages by their paths in the tree. Data of
        tests names those of other projects, and two tests have a tree of their own."""
        others = set(map(pathlib.PurePath, ("tests/style/test_documents.py",
                                            "tests/style/test_house.py")))
        wrong = [f"{path}: {page}" for path in tree.files()
                 if path not in others and "data" not in path.parts
                 for page in PAGE.findall(tree.text(path)) if not (tree.ROOT / page).exists()]
        self.assertEqual(wrong, [])
        self.assertEqual(PAGE.findall("see docs/a/b.md. https://c.d/docs/e.md docs/f/, docs/x-1"),
                         ["docs/a/b.md", "docs/f", "docs/x-1"])

    @unittest.skipUnless(PLAN.exists(), "the build folder is not configured")
    def test_messages_name_pages_that_are_installed(self):
        plan = json.loads(PLAN.read_text())
        installed = {os.path.relpath(path, tree.ROOT): entry["destination"]
                     for kind in ("data", "install_subdirs")
                     for path, entry in plan.get(kind, {}).items()}
        named = {page for path in tree.matching("src", ".c", ".h", ".def")
                 for string in re.findall(r'"((?:\\.|[^"\\\n])*)"', tree.text(path))
                 for page in re.findall(r"\b(?:docs|policies)/[\w./-]*\w\.md", string)}
        self.assertGreater(len(named), 2)
        for page in named:
            found = [destination for path, destination in installed.items()
                     if page == path or page.startswith(path + "/")]
            with self.subTest(page):
                self.assertEqual(len(found), 1)
                top = page.partition("/")[0]
                self.assertTrue(found[0].startswith(f"{{datadir}}/spillway/{top}"), found)

    def test_pages_are_short(self):
        """A page has at most 300 lines, but for generated tables."""
        self.assertEqual([f"{page}: {lines} lines" for page, lines in
                          ((page, tree.text(page).count("\n")) for page in PAGES
                           if page.parent not in shape.GENERATED) if lines > 300], [])

    def test_index_leads_to_every_page(self):
        """docs/README.md has a link to each page, or to a page of its folder that has one."""
        def linked(page):
            return {pathlib.PurePath(os.path.normpath(page.parent / path))
                    for path in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", tree.text(page))}
        index = pathlib.PurePath("docs/README.md")
        near = linked(index)
        near |= set().union(*(linked(page) for page in near & set(PAGES)))
        self.assertEqual([str(page) for page in PAGES if page not in near | {index}], [])

    def check_rows(self, submit):
        """The complaints about the lists if submit.def has this text."""
        with tempfile.NamedTemporaryFile("w", suffix=".def") as changed:
            changed.write(submit)
            changed.flush()
            done = subprocess.run(
                [sys.executable, "-B", tree.ROOT / "src/driver/submit_rows.py", CUDA, "--check",
                 tree.ROOT / "src/driver/functions.def", changed.name],
                capture_output=True, text=True)
        self.assertEqual(done.returncode == 0, done.stdout == "", done.stderr)
        return done.stdout

    def test_every_submitting_function_holds_the_barrier(self):
        rows = tree.text(pathlib.PurePath("src/driver/submit.def"))
        self.assertEqual(self.check_rows(rows), "")
        self.assertIn("cuLaunchHostFunc: enqueues work, but its row has no submit barrier",
                      self.check_rows(re.sub(r"(\(cuLaunchHostFunc, .*)BARRIER", r"\1-", rows)))
        self.assertIn("cuLaunchHostFunc: takes a stream, but is neither a row",
                      self.check_rows(re.sub(r"SPW_FN\(cuLaunchHostFunc, .*\n.*\n", "", rows)))


if __name__ == "__main__":
    unittest.main()
