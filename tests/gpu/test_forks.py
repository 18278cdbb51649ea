#!/usr/bin/env python3
"""Programs that are forked from a process that has imported PyTorch end, fail and hang as programs
of their own do. The PyTorch here is a module that notes each import."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import bounded  # noqa: E402
import forks  # noqa: E402
from sleepers import await_sleepers  # noqa: E402

TORCH = '''
import os
with open(os.environ["IMPORTS"], "a") as file:
    file.write("torch\\n")
if os.environ.get("BROKEN"):
    raise ImportError("on purpose")
AT_LOAD = os.environ.get("PYTORCH_ALLOC_CONF")
'''


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "torch.py").write_text(TORCH)
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
        self.env |= {"PYTHONPATH": folder.name, "IMPORTS": str(self.folder / "imports"),
                     "PYTHONFAULTHANDLER": "1"}
        self.keeper = forks.Keeper(self.folder / "forks", sys.executable)
        self.addCleanup(self.keeper.close)

    def script(self, text):
        path = self.folder / "script.py"
        path.write_text("import torch\n" + textwrap.dedent(text))
        return path

    def run_script(self, text, *words, python=None, **options):
        return subprocess.run([python or self.keeper.python, self.script(text), *words], text=True,
                              env=self.env | options, capture_output=True, cwd=self.folder,
                              timeout=60)

    def imports(self):
        return len((self.folder / "imports").read_text().splitlines())

    def own(self, text, *words, **options):
        """The same by Python itself."""
        return self.run_script(text, *words, python=sys.executable, **options)


class Programs(Case):
    def test_one_import(self):
        for number in range(4):
            done = self.run_script("import sys; print(sys.argv[1])", str(number))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{number}\n", ""))
        self.assertEqual(self.imports(), 1)

    def test_it_is_the_program(self):
        """Words, folder, environment, name, output and the modules beside it are its own."""
        text = """
            import atexit, os, sys
            atexit.register(print, "at exit")
            print(__name__, sys.argv[1:], os.getcwd(), sys.path[0], os.environ.get("SPILLWAY_A"),
                  os.getenv("FOREIGN"), sorted(os.environ) == sorted(os.environ), os.getpid() > 1)
            print("said", file=sys.stderr)
            import beside_it
        """
        (self.folder / "beside_it.py").write_text("print('beside')")
        for options in ({"SPILLWAY_A": "1"}, {"SPILLWAY_A": "2", "FOREIGN": "x"}):
            own = self.own(text, "a", "b", **options)
            self.assertEqual((own.returncode, own.stderr), (0, "said\n"))
            done = self.run_script(text, "a", "b", **options)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (own.returncode, own.stdout, own.stderr))

    def test_variables_that_pytorch_reads(self):
        """Each value of those has a process of its own; others are the program's alone."""
        text = "import os; print(torch.AT_LOAD, os.environ['SPILLWAY_LIMIT'])"
        for setting in ("a", "b", "a", "b"):
            for limit in ("1", "2"):
                done = self.run_script(text, PYTORCH_ALLOC_CONF=setting, SPILLWAY_LIMIT=limit)
                self.assertEqual(done.stdout, f"{setting} {limit}\n", done.stderr)
        self.assertEqual(self.imports(), 2)

    def test_ends(self):
        for text, status in (("raise SystemExit(3)", 3), ("import os; os._exit(4)", 4),
                             ("1 / 0", 1), ("import os; os.abort()", -signal.SIGABRT),
                             ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
                              -signal.SIGTERM),
                             ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
                              -signal.SIGKILL)):
            done = self.run_script(text)
            self.assertEqual(done.returncode, status, text)
            own = self.own(text)
            self.assertEqual(own.returncode, status, text)
            # Its frames have the server's above them.
            self.assertEqual(*(re.findall(r"(?m)^[A-Z].*?(?= 0x|$)", run.stderr)
                               for run in (done, own)))
        self.assertEqual(self.imports(), 1 + 6)

    def test_what_is_no_script_runs_as_always(self):
        done = subprocess.run([self.keeper.python, "-c", "import torch; print(1)"], text=True,
                              env=self.env, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)
        self.assertEqual((self.folder / "forks/log").read_text(), "")

    def test_a_pytorch_that_cannot_be_imported(self):
        """Python itself says so; no more than two servers try."""
        for _ in range(4):
            done = self.run_script("", BROKEN="1")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"ImportError: on purpose\s*$")
            time.sleep(0.2)
        self.assertEqual(self.imports(), 2 + 4)

    def test_several_at_once(self):
        text = "import sys, time; time.sleep(0.5); print(sys.argv[1]); sys.exit(int(sys.argv[1]))"
        path = self.script(text)
        children = [subprocess.Popen([self.keeper.python, path, str(number)], env=self.env,
                                     stdout=subprocess.PIPE, text=True) for number in range(8)]
        for number, child in enumerate(children):
            self.assertEqual(child.communicate(timeout=60)[0], f"{number}\n")
            self.assertEqual(child.returncode, number)
        self.assertEqual(self.imports(), 1)


class Hangs(Case):
    LONG = f"3601.{os.getpid()}"  # of this test alone
    HANG = f"""
        import subprocess, sys, time
        subprocess.Popen(["sleep", "{LONG}"])
        print("hangs", flush=True)
        time.sleep(3601)
    """

    def check_sleepers(self, number):
        self.assertEqual(len(await_sleepers(self.LONG, number)), number)

    def test_a_program_that_hangs(self):
        """It counts as the command's, is looked at, aborted with its frames printed, and killed
        with what it started; the next one runs."""
        ending = bounded.run([self.keeper.python, self.script(self.HANG)], self.folder, 6,
                             env=self.env, name="run-")
        self.assertEqual(ending.stopped, "time")
        self.assertEqual((self.folder / "run-stdout").read_text(), "hangs\n")
        self.assertIn("most recent call first", (self.folder / "run-stderr").read_text())
        self.assertIn('script.py", line', (self.folder / "run-stderr").read_text())
        self.assertGreaterEqual(len(list(self.folder.glob("proc-*"))), 3)
        self.check_sleepers(0)
        self.assertEqual(self.run_script("print(1)").stdout, "1\n")
        self.assertEqual(self.imports(), 1)

    def test_the_one_who_asked_is_killed(self):
        child = subprocess.Popen([self.keeper.python, self.script(self.HANG)], env=self.env,
                                 stdout=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "hangs\n")
        self.check_sleepers(1)
        child.kill()
        child.communicate(timeout=30)
        self.check_sleepers(0)

    def test_an_abort_is_for_the_program(self):
        child = subprocess.Popen([self.keeper.python, self.script(self.HANG)], env=self.env,
                                 stdout=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "hangs\n")
        child.send_signal(signal.SIGABRT)
        time.sleep(0.5)
        self.check_sleepers(1)
        self.assertIsNone(child.poll())
        child.kill()
        child.communicate(timeout=30)
        self.check_sleepers(0)

    def test_what_it_leaves_behind(self):
        done = self.run_script(f'import subprocess; subprocess.Popen(["sleep", "{self.LONG}"])')
        self.assertEqual(done.returncode, 0)
        self.check_sleepers(0)

    def test_the_keeper_ends(self):
        child = subprocess.Popen([self.keeper.python, self.script(self.HANG)], env=self.env,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "hangs\n")
        self.keeper.close()
        self.check_sleepers(0)
        self.assertIn("has died", child.communicate(timeout=30)[1])
        self.assertEqual(child.returncode, 1)
        # Without it, Python itself.
        self.assertEqual(self.run_script("print(1)").stdout, "1\n")

    def test_a_server_that_died(self):
        """Another one takes its place."""
        text = "import os; print(os.getppid())"
        server = int(self.run_script(text).stdout)
        os.kill(server, signal.SIGKILL)
        time.sleep(0.2)
        others = {int(self.run_script(text).stdout) for _ in range(2)}
        self.assertEqual(len(others - {server}), 1)
        self.assertEqual(self.imports(), 2)


if __name__ == "__main__":
    unittest.main()
