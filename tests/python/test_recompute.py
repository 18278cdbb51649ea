#!/usr/bin/env python3
"""How the companion of the object enters a Python program: it must, whatever the flags of the
interpreter and the files of the user are, if the policy has a rule about modules. PyTorch is a
stand-in here, which every interpreter can import."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
PROGRAM = HERE / "recomputing.py"
SAID = ("spillway: recompute: rule blocks: 3 of 3 modules of Sequential run again in backward: 0 "
        "to 2")
BLOCKS = {"name": "blocks", "action": {"recompute": True}}


def interpreters():
    """The other versions of Python on this machine that PyTorch has wheels for."""
    home = pathlib.Path.home()
    for folder in (HERE.parents[1] / ".venv-newest", home / ".pyenv/versions",
                   home / ".local/share/uv/python"):
        for path in sorted(folder.glob("*3.*/bin/python3.*")):
            found = re.fullmatch(r"python3\.(\d+)t?", path.name)
            if found and int(found[1]) >= 8:
                yield path


@unittest.skipIf(os.environ.get("BUILD_SANITIZED", "none") != "none",
                 "the interpreter is not built with the sanitizer")
class Entry(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def policy(self, *rules):
        path = self.folder / "policy.json"
        path.write_text(json.dumps({"version": 1, "rules": rules}))
        return str(path)

    def run_program(self, command, rules=(BLOCKS,), preload=ROOT / "libspillway.so", cwd=None,
                    **settings):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("SPILLWAY", "LD_", "PYTHONPATH"))}
        env |= {"SPILLWAY_POLICY": self.policy(*rules), **settings}
        if preload is not None:
            env["LD_PRELOAD"] = str(preload)
        done = subprocess.run(list(map(str, command)), env=env, text=True, capture_output=True,
                              cwd=cwd or self.folder, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines(), done.stderr.splitlines()

    def check(self, command, expected=("main 6",), said=(SAID,), **settings):
        self.assertEqual(self.run_program(command, **settings), (list(expected), list(said)))

    # ---- ways in ----

    def test_flags(self):
        for flags in ([], ["-I"], ["-S"], ["-E"], ["-s"], ["-B", "-OO"], ["-I", "-S"],
                      ["-X", "utf8"], ["-W", "error"]):
            with self.subTest(flags):
                self.check([sys.executable, *flags, PROGRAM])

    def test_other_ways_to_start(self):
        text = f"exec(compile(open({str(PROGRAM)!r}).read(), {str(PROGRAM)!r}, 'exec'))"
        self.check([sys.executable, "-c", f"__file__ = {str(PROGRAM)!r}\n{text}"])
        self.check([sys.executable, "-m", "recomputing"], PYTHONPATH=str(HERE))

    def test_launcher(self):
        lines, said = self.run_program([ROOT / "spillway", "sim", "--memory", "1GiB", "--policy",
                                        self.policy(BLOCKS), "--", sys.executable, PROGRAM],
                                       preload=None)
        self.assertEqual(lines, ["main 6"])
        self.assertIn(SAID, said)

    def test_files_of_the_user(self):
        """A sitecustomize, also one that imports PyTorch, and a start-up file."""
        for text in ("import sys; sys.excepthook = None", "import sys; sys.path.insert(0, "
                     f"{str(HERE / 'standin')!r}); import torch", "raise SystemError('mine')"):
            (self.folder / "sitecustomize.py").write_text(text)
            lines, said = self.run_program([sys.executable, PROGRAM], PYTHONPATH=str(self.folder))
            self.assertEqual(lines, ["main 6"])
            self.assertIn(SAID, said)

    def test_processes(self):
        self.check([sys.executable, PROGRAM, "fork"], ["main 6", "child 12"])
        self.check([sys.executable, PROGRAM, "fork first"], ["child 6"])
        self.check([sys.executable, PROGRAM, "spawn"], ["worker 6"])
        self.check([sys.executable, PROGRAM, "forkserver"], ["worker 6"])
        self.check([sys.executable, PROGRAM, "program", "-I"])
        self.check([sys.executable, PROGRAM, "thread"], ["thread 6"])

    def test_other_imports(self):
        """Another package with a module of that name, and an import that fails at first."""
        self.check([sys.executable, PROGRAM, "other package"])
        self.check([sys.executable, PROGRAM, "other package later"])
        self.check([sys.executable, PROGRAM, "again"])

    def test_folders(self):
        """A relative path of the object, and files of the program's folder."""
        (self.folder / "python").mkdir()
        (self.folder / "python/recompute.py").write_text("raise SystemError('not this file')")
        self.check([sys.executable, PROGRAM], preload="./libspillway.so", cwd=ROOT)
        self.check([sys.executable, PROGRAM], cwd=self.folder)

    def test_other_interpreters(self):
        for path in interpreters():
            with self.subTest(path):
                self.check([path, PROGRAM])

    # ---- what changes ----

    def test_changes(self):
        self.check([sys.executable, PROGRAM, "changes"],
                   ["main 6", "['_spillway_recompute', 'hook']"])

    def test_nothing_changes(self):
        nothing = ["main 0", "[]"]
        other = {"name": "a", "action": {"log": True}}
        elsewhere = {**BLOCKS, "match": {"process": "other.py"}}
        command = [sys.executable, PROGRAM, "changes"]
        mistake = {"name": "a", "acton": {}}  # reported when CUDA is first used
        for rules in ((), (other,), (elsewhere,), (elsewhere, other), (mistake,)):
            self.check(command, nothing, (), rules=rules)
        self.check(command, nothing, (), preload=None)
        self.check(command, nothing, (), SPILLWAY="off")
        self.check(command, nothing, (), SPILLWAY_MODE="observe")
        self.check(command, nothing, (), SPILLWAY_POLICY="")

    def test_rules_of_a_rank(self):
        rule = {**BLOCKS, "match": {"rank": 1, "process": "recomputing.py"}}
        self.check([sys.executable, PROGRAM], rules=[rule], RANK="1")
        self.check([sys.executable, PROGRAM], ["main 0"], (), rules=[rule], RANK="0")

    # ---- trouble ----

    def test_a_rule_that_matches_nothing(self):
        rule = {**BLOCKS, "match": {"module": "layers.*"}}
        self.check([sys.executable, PROGRAM], ["main 0"], [
            "spillway: recompute: rule blocks matches no module (Sequential has blocks of Block)"],
            rules=[rule])

    def test_a_bad_policy(self):
        lines, said = self.run_program([sys.executable, PROGRAM, "changes"],
                                       rules=[{**BLOCKS, "match": {"nth": 1}}])
        self.assertEqual(lines, ["main 0", "[]"])
        self.assertEqual(len(said), 1, said)
        self.assertIn('"recompute" beside "nth"', said[0])

    def test_a_bad_companion(self):
        shutil.copy(ROOT / "libspillway.so", self.folder)
        preload = self.folder / "libspillway.so"
        self.check([sys.executable, PROGRAM], ["main 0"], [
            "spillway: recompute: no module is computed again, because the file "
            "python/recompute.py is not beside libspillway.so"], preload=preload)
        (self.folder / "python").mkdir()
        file = self.folder / "python/recompute.py"
        for text, why in (("x = = 1", "SyntaxError: invalid syntax (<spillway recompute>, line 1)"),
                          ("def enter(rules, say, mark):\n    1 / 0",
                           "ZeroDivisionError: division by zero"),
                          ("import sys\nsys.exit(3)", "SystemExit: 3")):
            file.write_text(text)
            self.check([sys.executable, PROGRAM], ["main 0"], [
                "spillway: recompute: no module is computed again, because the companion "
                f"{file} failed: {why}"], preload=preload)
        shutil.copy(ROOT / "python/recompute.py", file)
        self.check([sys.executable, PROGRAM], preload=preload)
        (self.folder / "spillway").mkdir()
        (self.folder / "python").rename(self.folder / "spillway/python")
        self.check([sys.executable, PROGRAM], preload=preload)


if __name__ == "__main__":
    unittest.main(verbosity=2)
