#!/usr/bin/env python3
"""Documents are true: generated parts are current, named paths exist, lists are complete."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import tree

BUILD = pathlib.Path(os.environ["BUILD_ROOT"])
CUDA = os.environ["BUILD_CUDA_HEADERS"]
DOCUMENTS = [path for path in tree.files() if path.suffix == ".md"]


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
            named = re.findall(r"`((?![A-Z])(?:\.?[\w-]+/)+[\w.*-]*)`|\]\(([\w./-]+)\)",
                               tree.text(document))
            for path in (quoted or linked for quoted, linked in named):
                if path.startswith(ignored):
                    continue
                here = (tree.ROOT / document).parent
                if not (list(tree.ROOT.glob(path.rstrip("/"))) or list(here.glob(path))):
                    wrong.append(f"{document}: {path}")
        self.assertEqual(wrong, [])

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
