#!/usr/bin/env python3
"""The wheel for aarch64, unpacked, under qemu: the command, and a training step of PyTorch's own
wheel on the simulated GPU."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "packing"))
import aarch64  # noqa: E402
import sysroot  # noqa: E402

SECONDS = 6000
NATIVE = "spillway/native"
STEP = """
import torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(8, 64, device="cuda")).square().sum()
loss.backward()
optimizer.step()
torch.cuda.synchronize()
print("trained on", torch.cuda.get_device_name(), torch.cuda.max_memory_allocated() > 0)
"""


class Wheel(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        done = subprocess.run([sys.executable, SOURCE / "packing/make_wheel.py", cls.folder,
                               "aarch64"], capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.wheel = pathlib.Path(done.stdout.strip())
        cls.site = cls.folder / "site"
        with zipfile.ZipFile(cls.wheel) as wheel:
            wheel.extractall(cls.site)
            for entry in wheel.infolist():
                (cls.site / entry.filename).chmod(entry.external_attr >> 16)

    def emulate(self, *command):
        paths = os.pathsep.join([str(self.site), str(aarch64.TORCH)])
        return subprocess.run([SOURCE / "packing/emulate.sh", "/usr/bin/python3", *command],
                              capture_output=True, text=True, timeout=SECONDS, cwd=self.folder,
                              env={"PATH": os.environ["PATH"], "PYTHONPATH": paths})

    def test_files_are_for_aarch64(self):
        files = [file for file in (self.site / NATIVE).rglob("*")
                 if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
        self.assertGreater(len(files), 10)
        for file in files:
            head = subprocess.run(["readelf", "-h", file], capture_output=True, text=True)
            self.assertRegex(head.stdout, r"Machine: +AArch64", file)

    def test_auditwheel_confirms_the_tag(self):
        done = subprocess.run([sys.executable, "-m", "auditwheel", "show", self.wheel],
                              capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": str(sysroot.TOOLS)})
        self.assertIn('following platform tag: "manylinux_2_31_aarch64"',
                      " ".join(done.stdout.split()), done.stderr)

    def test_command(self):
        done = self.emulate("-m", "spillway", "sim", "--memory", "1GiB", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("spillway: verdict: ", done.stderr)

    def test_step_of_pytorch(self):
        if not aarch64.TORCH.is_dir():
            self.skipTest("scripts/setup --aarch64=torch has not fetched PyTorch")
        done = self.emulate("-m", "spillway", "sim", "--profile", "gh200-96g", "--",
                            "/usr/bin/python3", "-c", STEP)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("trained on NVIDIA GH200 480GB True", done.stdout)
        self.assertTrue(re.search(r"verdict: fits", done.stderr), done.stderr)


if __name__ == "__main__":
    for module in (aarch64, sysroot):
        if not module.is_there():
            print(f"skipped: {module.why_not()}")
            sys.exit(77)
    unittest.main(verbosity=2)
