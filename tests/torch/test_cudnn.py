#!/usr/bin/env python3
"""The engines and the workspaces of convolutions are those that PyTorch's own cuDNN names."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import wheel
from running import HERE, Run

CARD = HERE.parent / "gpu/results/h100-80gb-peaks.json"
PEAKS = ("import torch; "
         "print('peaks', torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())")
# Prints the workspace of a large convolution in float32, in MiB.
LARGE = """
import sys
import torch
from torch.nn import functional

x, weight = (torch.zeros(shape, device="cuda") for shape in ((8, 256, 512, 512), (256, 256, 3, 3)))
if "last" in sys.argv:
    x, weight = (each.to(memory_format=torch.channels_last) for each in (x, weight))
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
out = functional.conv2d(x, weight, padding=1)
print("workspace", torch.cuda.max_memory_allocated() - before - 2 ** 31 >> 20)
"""
# Each process asks for itself; the child of a fork must not use its parent's connection.
CHILDREN = """
import os
import torch
from torch.nn import functional

def work():
    x = torch.zeros(8, 64, 56, 56, device="cuda")
    functional.conv2d(x, torch.zeros(64, 64, 3, 3, device="cuda"))
    torch.cuda.synchronize()

pid = os.fork()
work()
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
# Signals arrive while the library is loaded, and no descriptor stays open.
INTERRUPTED = """
import os
import signal
import torch
from torch.nn import functional

signal.signal(signal.SIGALRM, lambda *_: None)
x = torch.zeros(8, 64, 56, 56, device="cuda")
torch.cuda.synchronize()
before = os.listdir("/proc/self/fd")
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
functional.conv2d(x, torch.zeros(64, 64, 3, 3, device="cuda"))
signal.setitimer(signal.ITIMER_REAL, 0)
torch.cuda.synchronize()
print(sorted(os.listdir("/proc/self/fd")) == sorted(before))
"""
# Prints how many sizes of a tensor cuDNN says that there are, and that it wrote if 0, 2 and 4 are
# asked for.
COUNTS = """
import ctypes
import sys

cudnn = ctypes.CDLL(sys.argv[1])
TENSOR, INT64 = 17, 3
ALIGNMENT, TYPE, SIZES, STRIDES, ID = 900, 901, 902, 903, 906
tensor, count, sizes = ctypes.c_void_p(), ctypes.c_int64(), (ctypes.c_int64 * 4)()
assert cudnn.cudnnBackendCreateDescriptor(TENSOR, ctypes.byref(tensor)) == 0
for name, values in (ALIGNMENT, [16]), (SIZES, [2, 3, 4, 5]), (STRIDES, [60, 20, 5, 1]), (ID, [7]):
    array = (ctypes.c_int64 * len(values))(*values)
    assert cudnn.cudnnBackendSetAttribute(tensor, name, INT64, ctypes.c_int64(len(values)),
                                          array) == 0
assert cudnn.cudnnBackendSetAttribute(tensor, TYPE, 1, ctypes.c_int64(1),
                                      ctypes.byref(ctypes.c_int())) == 0
assert cudnn.cudnnBackendFinalize(tensor) == 0
for asked, array in (0, None), (0, sizes), (2, sizes), (4, sizes):
    assert cudnn.cudnnBackendGetAttribute(tensor, SIZES, INT64, ctypes.c_int64(asked),
                                          ctypes.byref(count), array) == 0
    print(count.value)
"""
# Prints the workspaces of two lines, in bytes. cuDNN 9.19 and 9.26 choose other engines for them.
TWO_LINES = """
import torch
from torch.nn import functional

def tensors(last):
    form = torch.channels_last if last else torch.contiguous_format
    return [torch.zeros(shape, device="cuda").to(memory_format=form)
            for shape in ((4, 128, 256, 256), (128, 128, 1, 1))]

def report(before):
    print(torch.cuda.max_memory_allocated() - before - 4 * 4 * 128 * 256 * 256)

pair = tensors(False)
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
functional.conv2d(*pair)
report(before)
pair = tensors(True)
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
functional.conv2d(*pair)
report(before)
"""
LIBRARY = "nvidia/cudnn/lib/libcudnn.so.9"
CARDS_TORCH = "2.11."
DROPPED = "import os, torch\nos.setuid(65534)\n"


class CuDNN(unittest.TestCase):
    interpreter = None
    said = ""  # stderr of the last run

    def run_code(self, code, flags=(), settings=None, words=()):
        """(stdout, the verdict's JSON)"""
        with tempfile.TemporaryDirectory() as name:
            os.chmod(name, 0o755)
            verdict = pathlib.Path(name) / "verdict"
            program = pathlib.Path(name) / "program.py"
            program.write_text(code)
            run = Run([self.interpreter, str(program), *words],
                      ["--no-pool", "--verbose", "--json", str(verdict), *flags],
                      {"XDG_CACHE_HOME": name, **(settings or {})})
            self.assertEqual(run.status, 0, run.stderr)
            self.said = run.stderr
            return run.stdout, json.loads(verdict.read_text())

    def peaks(self, script, *words):
        """Allocated and reserved bytes, and the sums of the verdict's `cudnn_graphs`."""
        code = (f"import runpy, sys; sys.path.insert(0, {str(HERE)!r}); "
                f"runpy.run_path({str(HERE / script)!r}, run_name='__main__'); {PEAKS}")
        stdout, verdict = self.run_code(code, ["--profile", "h100-80g"], words=words)
        line = next(line for line in stdout.splitlines() if line.startswith("peaks"))
        return *map(int, line.split()[1:]), verdict["devices"][0]["cudnn_graphs"]

    def card(self, program):
        return next(row for row in json.loads(CARD.read_text())["rows"]
                    if row["program"] == program and row["under"] == "nothing")

    def need_the_cards_torch(self):
        """Another PyTorch brings another cuDNN, which makes another choice."""
        found = wheel.versions(self.interpreter)[0]
        if not found.startswith(CARDS_TORCH):
            self.skipTest(f"the card's figures are of PyTorch {CARDS_TORCH}, not {found}")

    def test_as_on_the_card(self):
        self.need_the_cards_torch()
        for program, script, *words in (("convolution", "convolution.py"),
                                        ("hf_resnet", "hf_models.py", "resnet")):
            with self.subTest(program):
                allocated, reserved, graphs = self.peaks(script, *words)
                self.assertEqual(reserved, self.card(program)["reserved"])
                self.assertAlmostEqual(allocated / self.card(program)["allocated"], 1, delta=0.005)
                self.assertEqual((graphs["guessed"], graphs["searched"]), (0, 0))
                self.assertGreater(graphs["asked"], 0)

    def test_search_is_counted(self):
        """With cudnn.benchmark PyTorch allocates the largest workspace of all engines."""
        self.need_the_cards_torch()
        plain, *_ = self.peaks("convolution.py")
        allocated, _, graphs = self.peaks("convolution.py", "--benchmark")
        self.assertGreater(allocated, plain)
        self.assertEqual(graphs["searched"], graphs["asked"])
        self.assertIn("cudnn.benchmark tries all engines of 20 graphs: ", self.said)
        self.assertIn("; cudnn.benchmark may add", self.said)
        self.assertNotIn("guessed", self.said)

    def test_depends_on_the_card(self):
        for profile, words, workspace in (("t4-16g", [], 6), ("t4-16g", ["last"], 4104),
                                          ("h100-80g", ["last"], 2)):
            with self.subTest(profile=profile, words=words):
                stdout, _ = self.run_code(LARGE, ["--profile", profile, "--memory", "64GiB"],
                                          words=words)
                self.assertEqual(stdout.split(), ["workspace", str(workspace)])

    def test_each_process_asks(self):
        _, verdict = self.run_code(CHILDREN)
        self.assertEqual([device["cudnn_graphs"] for device in verdict["devices"]],
                         2 * [{"asked": 1, "guessed": 0, "searched": 0}])

    def test_a_process_that_gets_signals(self):
        stdout, verdict = self.run_code(INTERRUPTED)
        self.assertEqual(stdout, "True\n")
        self.assertEqual(verdict["devices"][0]["cudnn_graphs"],
                         {"asked": 1, "guessed": 0, "searched": 0})

    def test_a_setting_that_cudnn_reads(self):
        """Without TF32 other engines are the first; each setting has answers of its own."""
        with tempfile.TemporaryDirectory() as name:
            sizes = [self.run_code(LARGE, ["--memory", "64GiB"],
                                   {"XDG_CACHE_HOME": name, **setting})[0]
                     for setting in ({}, {"NVIDIA_TF32_OVERRIDE": "0"}, {})]
        self.assertEqual(sizes[0], sizes[2])
        self.assertNotEqual(sizes[0], sizes[1])

    def test_a_request_gets_no_more(self):
        """PyTorch 2.15 makes a list as long as the answer says, and asks for one engine."""
        simulated = Run([self.interpreter, "-c", COUNTS, "libcudnn.so.9"], ["--no-pool"])
        self.assertEqual(simulated.stdout, "4\n0\n2\n4\n", simulated.stderr)
        folder = next(pathlib.Path(self.interpreter).parents[1].glob(
            "lib/python3*/site-packages/nvidia/cudnn/lib"))
        done = subprocess.run([self.interpreter, "-c", COUNTS, folder / "libcudnn.so.9"],
                              capture_output=True, text=True,
                              env={**os.environ, "LD_LIBRARY_PATH": str(folder)})
        self.assertEqual(done.stdout, simulated.stdout, done.stderr)

    def other_library(self):
        """The cuDNN of another PyTorch than the interpreter's."""
        folders = [wheel.SOURCE / ".venv", *(wheel.SOURCE / ".venv-newest").glob("*")]
        own = next(pathlib.Path(self.interpreter).parents[1].glob(f"lib/python3*/*/{LIBRARY}"))
        for folder in folders:
            for path in folder.glob(f"lib/python3*/*/{LIBRARY}"):
                if not path.samefile(own) and path.stat().st_size != own.stat().st_size:
                    return str(path.resolve())
        return self.skipTest("there is one version of cuDNN here (scripts/setup --torch-newest)")

    def test_what_an_upgrade_costs(self):
        """`fit --cudnn` names the lines whose workspaces `sim` has with either library."""
        path = self.other_library()
        own, other = ([int(word) for word in self.run_code(TWO_LINES, flags)[0].split()]
                      for flags in ((), ("--cudnn", path)))
        self.assertNotEqual(own, other)
        with tempfile.TemporaryDirectory() as name:
            program, result = pathlib.Path(name) / "program.py", pathlib.Path(name) / "result"
            program.write_text(TWO_LINES)
            done = subprocess.run(
                [os.environ["BUILD_ROOT"] + "/spillway", "fit", "--gpus", "h100-80g", "--cudnn",
                 path, "--json", result, "--", self.interpreter, program],
                text=True, capture_output=True, stdin=subprocess.DEVNULL,
                env={**os.environ, "XDG_CACHE_HOME": name})
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(result.read_text())["cudnn"]
        self.assertEqual(found["path"], path)
        self.assertIn(f"with cuDNN {found['version']} in place of the program's:", done.stdout)
        changes = {re.search(r"program\.py:(\d+)", line["line"])[1]:
                   line["bytes"] - line["own_bytes"] for line in found["lines"]}
        numbers = [str(number) for number, line in enumerate(TWO_LINES.splitlines(), 1)
                   if line.startswith("functional.conv2d")]
        for number, change in zip(numbers, (new - old for old, new in zip(own, other))):
            self.assertAlmostEqual(changes.get(number, 0), change, delta=1 << 20)

    def test_without_an_answer(self):
        """The simulated cuDNN then guesses: it copies what is not in channels-last form."""
        unset = f"import os; del os.environ['SPILLWAY_CUDNN_SOCKET']\n{LARGE}"
        stdout, verdict = self.run_code(unset, ["--memory", "64GiB"])
        self.assertEqual(stdout.split(), ["workspace", "4098"])
        self.assertEqual(verdict["devices"][0]["cudnn_graphs"],
                         {"asked": 0, "guessed": 1, "searched": 0})
        self.assertIn("the workspace of 1 graph of cuDNN is guessed", self.said)
        self.assertIn("; cuDNN's part is a guess", self.said)

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_another_user_has_no_library_loaded(self):
        stdout, _ = self.run_code(DROPPED + LARGE, ["--memory", "64GiB"])
        self.assertEqual(stdout.split(), ["workspace", "4098"])

    def test_the_second_run_loads_no_library(self):
        with tempfile.TemporaryDirectory() as name:
            settings = {"XDG_CACHE_HOME": name}
            answers = pathlib.Path(name) / "spillway/cudnn-answers-4"
            first, _ = self.run_code(LARGE, ["--memory", "64GiB"], settings)
            before = answers.read_bytes()
            second, verdict = self.run_code(LARGE, ["--memory", "64GiB"], settings)
            self.assertEqual(first, second)
            self.assertEqual(answers.read_bytes(), before)
            self.assertEqual(verdict["devices"][0]["cudnn_graphs"]["asked"], 1)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(CuDNN))
