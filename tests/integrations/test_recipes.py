#!/usr/bin/env python3
"""The recipes of docs/recipes/ run as they are written, with a program on the simulated GPU."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import beside

sys.path.insert(0, str(beside.SOURCE / "packing"))
import contents  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TEXT = (beside.SOURCE / "docs/recipes/README.md").read_text()
TRAIN = """
import ctypes

runtime = ctypes.CDLL("libcudart.so.13")
address = ctypes.c_void_p()
for _ in range(3):
    assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(600 << 20)) == 0
with open("/proc/self/status") as status:
    print("".join(line for line in status if line.startswith("CapBnd")), end="")
"""
TASK = """

@ray.remote
def take():
    import runpy
    import spillway
    runpy.run_path("train.py")
    return spillway.stats()["devices"][0]["live_bytes"]


print(ray.get(take.remote()))
"""
PEAK = 1800 << 20
# A network of its own: what a recipe starts is not to be reached from elsewhere. Names are looked
# up only where there is an address other than 127.0.0.1.
ALONE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
LOCAL = ("sh", "-c", 'ip link set lo up && ip address add 10.0.0.1/32 dev lo && exec "$@"', "sh")
SECONDS = 300
# It runs as root, in those namespaces, and on one machine.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_oob_tcp_if_include": "lo"}


def blocks(heading, language):
    """The code under a heading of the page."""
    part = re.search(rf"(?ms)^## {heading}\n(.*?)(?=^## |\Z)", TEXT)[1]
    return re.findall(rf"(?s)```{language}\n(.*?)```", part)


def block(heading, language):
    (code,) = blocks(heading, language)
    return code


def needs(*programs):
    """Skips a test if one of these is not there."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [name for name in programs if not shutil.which(name, path=path)]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class Recipes(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "train.py").write_text(TRAIN)
        (self.folder / "bin").mkdir()
        for name, module in (("python", ""), ("torchrun", "-m torch.distributed.run "),
                             ("accelerate", "-m accelerate.commands.accelerate_cli ")):
            program = self.folder / "bin" / name
            program.write_text(f'#!/bin/sh\nexec {beside.PYTHON} {module}"$@"\n')
            program.chmod(0o755)
        self.environment = beside.environment(
            PATH=f"{self.folder}/bin:{beside.COMMAND.parent}:/usr/sbin:/usr/bin:/sbin:/bin",
            LD_LIBRARY_PATH=str(beside.COMMAND.parent / "sim"), SPILLWAY_SIM_MEMORY="1GiB",
            HOME=str(self.folder))

    def run_here(self, *command, **variables):
        done = subprocess.run([*map(str, command)], cwd=self.folder, text=True,
                              env={**self.environment, **variables}, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def run_alone(self, *command, **variables):
        if subprocess.run([*ALONE, "true"], capture_output=True).returncode != 0:
            self.skipTest("needs root, to have namespaces of its own")
        return self.run_here(*ALONE, *LOCAL, *command, **variables)

    def peaks(self, pattern):
        """The live peaks in files of statistics, and the ranks."""
        found = [json.loads(path.read_text()) for path in sorted(self.folder.glob(pattern))]
        return [(one.get("rank"), one["devices"][0]["live_peak_bytes"]) for one in found]

    def check_page(self, name, exit_code):
        """The page has both ranks, by name."""
        data = re.search(r'<script id="data" type="application/json">(.*?)</script>',
                         (self.folder / name).read_text(), re.S)[1]
        self.assertEqual([(run["rank"], run["title"], dict(run["facts"])["exit code"])
                          for run in sorted(json.loads(data)["runs"], key=lambda run: run["rank"])],
                         [(rank, "python train.py", exit_code) for rank in range(2)])

    @needs("ip")
    def test_torchrun_and_accelerate(self):
        reason = beside.why_not("torch", "accelerate")
        if reason:
            self.skipTest(reason)
        real, simulated = blocks("torchrun, accelerate", "bash")
        torchrun, ranks, accelerate = real.splitlines()
        for page, code in ("job.html", f"{torchrun}\n{ranks}"), ("a.html", accelerate):
            # The runtime of the simulated GPU, for launchers that count the devices with PyTorch.
            done = self.run_alone(beside.COMMAND, "sim", "--no-pool", "--devices", "2", "--memory",
                                  "1GiB", "--", "bash", "-e", "-c", code,
                                  SPILLWAY_SUMMARY="short")
            self.check_page(page, "0")
            self.assertEqual(done.stderr.count("all ranks here: peak live 1.76 GiB"), 1)
            self.assertEqual("peak of 2 ranks: mean 1.76 GiB" in done.stdout, page == "job.html")
        self.assertEqual(self.peaks("s-*.json"), [(0, PEAK), (1, PEAK)])
        done = self.run_alone("bash", "-e", "-c", simulated)
        self.assertIn("torchrun starts 2 ranks, so 2 devices are simulated", done.stderr)
        # Both ranks of this program use device 0, one after the other or at once.
        self.assertRegex(done.stderr, r"peak: (1\.76 GiB live \(rank |1 GiB in 2 processes)")

    @needs("sbatch", "slurmctld", "slurmd", "ip")
    def test_slurm(self):
        (self.folder / "job.sh").write_text(block("Slurm", "bash"))
        done = self.run_alone("bash", HERE / "one_node.sh", "sbatch", "--wait", "job.sh")
        self.assertIn("Submitted batch job 1", done.stdout)
        self.assertEqual(self.peaks("s-*.json"), [(0, PEAK), (1, PEAK)])
        self.check_page("job.html", "not known")
        self.assertIn("CapBnd", (self.folder / "job.out").read_text())

    @needs("mpirun", "ip")
    def test_open_mpi(self):
        done = self.run_alone("bash", "-e", "-c", block("Open MPI", "bash"), **OPEN_MPI)
        self.assertEqual(self.peaks("s-*.json"), [(0, PEAK), (1, PEAK)])
        self.assertIn("peak of 2 ranks: mean 1.76 GiB", done.stdout)
        self.check_page("job.html", "not known")

    @needs("mpirun", "ip")
    def test_open_mpi_as_the_program(self):
        line = re.search("`(spillway run [^`]*mpirun[^`]*)`", " ".join(TEXT.split()))[1]
        self.run_alone("bash", "-c", line, **OPEN_MPI)
        self.check_page("job.html", "0")

    def test_ray(self):
        reason = beside.why_not("ray")
        if reason:
            self.skipTest(reason)
        code = block("Ray", "python").replace("/tmp/s-%p", f"{self.folder}/s-%p")
        code = code.replace("ray.init(", "ray.init(num_cpus=1, include_dashboard=False, ")
        (self.folder / "job.py").write_text(code + TASK)
        done = self.run_here(beside.PYTHON, "job.py", RAY_USAGE_STATS_ENABLED="0")
        self.assertEqual(done.stdout.splitlines()[-1], str(PEAK))
        # The worker writes its file when it ends, which may be after the job.
        end = time.monotonic() + 20
        while not list(self.folder.glob("s-*.json")) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(self.peaks("s-*.json"), [(None, PEAK)])

    def bundle(self):
        """Like scripts/bundle: a folder for images."""
        contents.pack(beside.COMMAND.parent, self.folder / "bundle")

    def in_image(self, *steps):
        """Runs commands one after the other in a bare root without capabilities."""
        return self.run_alone("bash", HERE / "bare_root.sh", self.folder,
                              *(word for step in steps for word in (*step, ";")),
                              PATH="/app/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                              PYTHON="/usr/bin/python3",
                              LD_LIBRARY_PATH="/opt/spillway/sim:/spillway/sim")

    @needs("patchelf", "setpriv", "ip")
    def test_docker(self):
        self.bundle()
        words = dict(re.findall(r"(?m)^(ENTRYPOINT|CMD) (\[.*\])$", block("Docker", "dockerfile")))
        done = self.in_image([*json.loads(words["ENTRYPOINT"]), *json.loads(words["CMD"])])
        self.check_image(done)

    def check_image(self, done):
        self.assertIn("CapBnd:\t0000000000000000\n", done.stdout)
        self.assertRegex(done.stderr, "device 0 is full: .* on the host now")
        self.assertRegex(done.stderr, r"peak live 1\.76 GiB")

    @needs("patchelf", "setpriv", "ip")
    def test_kubernetes(self):
        self.bundle()
        pod = json.loads(subprocess.run(
            [beside.PYTHON, "-c", "import json, sys, yaml; print(json.dumps(yaml.safe_load("
             "sys.stdin)))"], input=block("Kubernetes", "yaml"), text=True, capture_output=True,
            check=True).stdout)["spec"]
        (first,), (main,) = pod["initContainers"], pod["containers"]
        volumes = {one["name"] for one in pod["volumes"]}
        for container in first, main:
            self.assertLessEqual({one["name"] for one in container["volumeMounts"]}, volumes)
            self.assertNotIn("env", container)  # nothing but the command has LD_PRELOAD
            self.assertNotIn("securityContext", container)
        done = self.in_image(first["command"], [*main["command"], *main["args"]])
        self.check_image(done)
        self.assertEqual(self.peaks("results/s-*.json"), [(None, PEAK)])

    def test_table(self):
        """It names the versions that were tested."""
        requirements = (HERE / "requirements.txt").read_text()
        self.assertIn("ray==" + re.search(r"(?m)^\| Ray \| yes: ([\d.]+),", TEXT)[1], requirements)


if __name__ == "__main__":
    beside.run_tests("yaml")
