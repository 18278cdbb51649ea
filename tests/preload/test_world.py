#!/usr/bin/env python3
"""`spillway sim --world`: single ranks of a job, as far as that needs no PyTorch."""
import json
import pathlib
import subprocess
import sys
import textwrap
import unittest

import harness
from harness import COMMAND

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR",
         "SPILLWAY_SIM_DEVICES")
PYTHON_IS_PLAIN = unittest.skipIf(harness.SANITIZED,
                                  "the interpreter is not built with the sanitizer")


class World(harness.Case):
    def run_sim(self, *words, **env):
        return subprocess.run([COMMAND, *words], env=harness.environment(preload=False, **env),
                              text=True, capture_output=True, timeout=60)

    def python(self, text, *flags, path=None):
        """Each line that Python prints, for each rank."""
        env = harness.environment(preload=False)
        env["PYTHONPATH"] = str(path or "")
        done = subprocess.run([COMMAND, "sim", *flags, "--", sys.executable, "-c",
                               textwrap.dedent(text)], env=env, text=True, capture_output=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def ranks(self, *flags):
        return [dict(zip(NAMES, line.split())) for line in self.python(
            f"import os; print(*(os.environ.get(name, '-') for name in {NAMES}))", *flags)]

    @PYTHON_IS_PLAIN
    def test_environment(self):
        first, second = self.ranks("--world", "1024", "--rank", "0,1021")
        self.assertEqual(first["RANK"], "0")
        self.assertEqual(second, {"RANK": "1021", "WORLD_SIZE": "1024", "LOCAL_RANK": "5",
                                  "LOCAL_WORLD_SIZE": "8", "GROUP_RANK": "127",
                                  "MASTER_ADDR": "127.0.0.1", "SPILLWAY_SIM_DEVICES": "8"})

    @PYTHON_IS_PLAIN
    def test_ranges_and_devices(self):
        found = self.ranks("--world", "6", "--rank", "1..2,5", "--devices", "2")
        self.assertEqual([(row["RANK"], row["LOCAL_RANK"]) for row in found],
                         [("1", "1"), ("2", "0"), ("5", "1")])

    @PYTHON_IS_PLAIN
    def test_without_world_nothing_is_set(self):
        self.assertEqual(self.ranks()[0]["RANK"], "-")

    @PYTHON_IS_PLAIN
    def test_other_sitecustomize_runs(self):
        pathlib.Path(self.folder, "sitecustomize.py").write_text("mark = 'of the user'\n"
                                                                 "print('user')\n")
        self.assertEqual(self.python("print('program')", "--world", "2", path=self.folder),
                         ["user", "program"])

    @PYTHON_IS_PLAIN
    def test_json_has_each_rank(self):
        path = pathlib.Path(self.folder, "out.json")
        self.python("pass", "--world", "3", "--rank", "0..2", "--json", str(path))
        found = json.loads(path.read_text())
        self.assertEqual(found["world"], 3)
        self.assertEqual([row["rank"] for row in found["ranks"]], [0, 1, 2])
        self.assertEqual({row["verdict"] for row in found["ranks"]}, {"unused"})

    @PYTHON_IS_PLAIN
    def test_first_failure_is_the_exit_code(self):
        done = self.run_sim("sim", "--world", "3", "--rank", "0..2", "--", sys.executable, "-c",
                            "import os, sys; sys.exit(3 * int(os.environ['RANK']))")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"spillway: 3 of 3 ranks; what a real \S+ needs for each:\n")

    def test_bad_input(self):
        for flags, message in (
                (["--rank", "0"], "--rank needs --world, the number of ranks of the job"),
                (["--world", "4", "--rank", "4"],
                 "--rank: there is no such rank in --world=4 (expected 0 to 3)"),
                (["--world", "4", "--rank", "3..1"],
                 "--rank=3..1: not a list of ranks (expected 0,1,7 or 0..7)"),
                (["--world", "4", "--rank", "x"],
                 "--rank=x: not a list of ranks (expected 0,1,7 or 0..7)"),
                (["--world", "100", "--rank", "0..99"], "--rank: more than 64 ranks"),
                (["--world", "4", "--rank", "0,1", "--compare"],
                 "--compare takes one rank (expected --rank 0)")):
            done = self.run_sim("sim", *flags, "--", "true")
            self.assertEqual((done.returncode, done.stderr), (2, f"spillway: sim: {message}\n"))
        for words in (["torchrun", "train.py"], ["python", "-m", "torch.distributed.run", "t.py"]):
            done = self.run_sim("sim", "--world", "4", "--", *words)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"torch\S+ starts ranks itself")
        done = self.run_sim("fit", "--world", "4", "--rank", "0,1", "--", "true")
        self.assertEqual((done.returncode, done.stderr),
                         (2, "spillway: fit: --rank: one rank at a time (expected --rank 0)\n"))


if __name__ == "__main__":
    unittest.main()
