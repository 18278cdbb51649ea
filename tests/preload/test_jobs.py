#!/usr/bin/env python3
"""Jobs of several ranks: devices for the launcher's ranks, names of ranks, one page for all."""
import fcntl
import json
import os
import re
import subprocess
import sys
import time
import unittest

import harness
from harness import COMMAND, PROGRAMS

FIT = PROGRAMS / "fit"
# Prints the number of devices.
COUNT = f"""#!{sys.executable}
import ctypes
count, cuda = ctypes.c_int(), ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
print(count.value)
"""
# Starts two ranks of the program behind its option -n 2, or what comes of RANKS, as a launcher.
START = f"""#!{sys.executable}
import os, subprocess, sys
count = int(os.environ.get("RANKS", "2"))
names = os.environ["NAMES"].split()
ranks = [subprocess.Popen([part.replace("RANK", str(rank)) for part in sys.argv[3:]],
                          env={{**os.environ, names[0]: str(rank), names[1]: str(count)}})
         for rank in range(count)]
sys.exit(max(rank.wait() for rank in ranks))
"""
TORCHRUN, MPIRUN = "RANK WORLD_SIZE", "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE"
SLURM = "SLURM_PROCID SLURM_NTASKS"


@unittest.skipIf(harness.SANITIZED, "Python is not built with the sanitizer")
class Jobs(harness.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()

    def script(self, text, *names):
        for name in names:
            path = self.folder / "bin" / name
            path.write_text(text)
            path.chmod(0o755)

    def run_it(self, *words, status=0, **env):
        env = harness.environment(False, False) | {
            "PATH": f"{self.folder}/bin:{COMMAND.parent}:{os.environ['PATH']}", **env}
        done = self.run_command(words, env)
        self.assertEqual(done.status, status, done.stderr)
        return done

    @staticmethod
    def runs(page):
        return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>',
                                    page.read_text(), re.S)[1])["runs"]


class Devices(Jobs):
    def setUp(self):
        super().setUp()
        self.script(COUNT, "torchrun", "accelerate", "accelerate-launch", "deepspeed", "mpirun",
                    "mpiexec", "srun", "python", "uv")

    def check(self, line, launcher, ranks, devices=None, flags=(), **env):
        done = self.run_it(COMMAND, "sim", *flags, "--", *line.split(), **env)
        said = [text for text in done.stderr.splitlines() if "ranks" in text]
        self.assertEqual(int(done.stdout), devices or ranks or 1, line)
        self.assertEqual(said, [] if launcher is None else [
            f"spillway: {launcher} starts {ranks} ranks, so {devices or ranks} devices are "
            "simulated (--devices sets another number)"], line)

    def test_each_launcher(self):
        for line, launcher, ranks in (
                ("torchrun --nproc-per-node 4 train.py", "torchrun", 4),
                ("torchrun --standalone --nproc_per_node=2 train.py", "torchrun", 2),
                ("python -m torch.distributed.run --nnodes 1 --nproc-per-node 3 t.py",
                 "torch.distributed.run", 3),
                ("accelerate launch --num_processes 2 train.py", "accelerate", 2),
                ("accelerate launch --multi_gpu --num_processes=3 t.py --x 1", "accelerate", 3),
                ("accelerate-launch --num-processes 2 train.py", "accelerate-launch", 2),
                ("python -m accelerate.commands.launch --num_processes 2 t.py",
                 "accelerate.commands.launch", 2),
                ("deepspeed --num_gpus 2 train.py", "deepspeed", 2),
                ("mpirun -n 2 python train.py", "mpirun", 2),
                ("mpirun --bind-to none -np 5 python train.py", "mpirun", 5),
                ("mpiexec -n 2 python train.py", "mpiexec", 2),
                ("srun -n2 python train.py", "srun", 2),
                ("srun --mpi=pmix -p gpu --ntasks=3 python train.py", "srun", 3),
                ("uv run torchrun --nproc-per-node 2 train.py", "torchrun", 2),
                ("srun --ntasks-per-node 1 torchrun --nproc-per-node 4 t.py", "torchrun", 4),
                ("srun -n 4 torchrun --nproc-per-node 2 t.py", "srun", 4)):
            self.check(line, launcher, ranks)
        self.check("srun python train.py", "srun", 2, SLURM_NTASKS="2")
        self.check("mpirun -n 100 python train.py", "mpirun", 100, 64)

    def test_one_device(self):
        for line in ("python train.py -n 4", "srun python train.py -n 4",
                     "mpirun --mca=x -l ./a b.py -n 4", "torchrun --nproc-per-node gpu train.py",
                     "torchrun --nproc-per-node", "torchrun --nproc-per-node 1 train.py",
                     "torchrun train.py --nproc-per-node 4", "accelerate launch train.py",
                     "mpirun --no-n 4 -n", "srun -n 99999999999999999999 x", "srun -n -2 x"):
            self.check(line, None, None)

    def test_the_user_chooses(self):
        line = "torchrun --nproc-per-node 4 train.py"
        self.check(line, None, None, 2, ("--devices", "2"))
        self.check(line, None, None, 3, SPILLWAY_SIM_DEVICES="3")

    def test_other_commands(self):
        self.script(f"#!/bin/sh\nexec {FIT} take\n", "torchrun")
        line = "torchrun", "--nproc-per-node", "2", "train.py"
        for words in (("fit", "--gpus", "l4-24g"), ("advise", "--budget", "1GiB"),
                      ("sim", "--compare")):
            said = self.run_it(COMMAND, *words, "--", *line).stderr
            self.assertEqual(said.count("torchrun starts 2 ranks, so 2 devices are simulated"), 1)


class Verdict(Jobs):
    def test_names_the_rank_that_spilled(self):
        """Both ranks leave nothing free, so the memory on the host decides."""
        self.script(START, "mpirun")
        take = self.folder / "take"
        take.write_text(f"#!/bin/sh\n[ $1 = 0 ] && exec {FIT} take take\n"
                        f"export CUDA_VISIBLE_DEVICES=1\nexec {FIT} take take take\n")
        take.chmod(0o755)
        done = self.run_it(COMMAND, "sim", "--limit", "96MiB", "--memory", "1GiB", "--verbose",
                           "--", "mpirun", "-n", "2", take, "RANK", NAMES=MPIRUN)
        self.assertRegex(done.stderr, r"\nspillway:   peak: 144 MiB live \(rank 1, device 0\); ")
        for rank in range(2):
            self.assertRegex(done.stderr, rf"\(pid \d+, rank {rank}\) on device 0 \(96 MiB\)")


class Page(Jobs):
    """One page for all ranks of a job."""

    def setUp(self):
        super().setUp()
        self.script(START, "torchrun", "mpirun")

    def check(self, page, ranks, said):
        self.assertEqual([(run["rank"], run["file"], run["title"], run["verdict"][:4])
                          for run in sorted(self.runs(page), key=lambda run: run["rank"])],
                         [(rank, f"r-{rank}.rec", "fit take", "fits") for rank in range(ranks)])
        self.assertEqual(said.count("spillway: report: "), 1, said)

    def test_one_command_for_the_job(self):
        """Whichever launcher it is; the exit code is known."""
        for names in TORCHRUN, MPIRUN, SLURM:
            done = self.run_it(COMMAND, "sim", "--report", "r.html", "--stats", "s-%r.json", "--",
                               "torchrun", "-n", "2", FIT, "take", NAMES=names)
            self.check(self.folder / "r.html", 2, done.stderr)
            self.assertEqual({dict(run["facts"])["exit code"]
                              for run in self.runs(self.folder / "r.html")}, {"0"})
            self.assertEqual(sorted(path.name for path in self.folder.glob("s*")),
                             ["s-0.json", "s-1.json"])

    def test_a_command_for_each_rank(self):
        """The last to end has all ranks, and rank 0 says where the page is. Files of ranks that
        this job does not have are not on it."""
        for names in TORCHRUN, MPIRUN, SLURM:
            for ranks in 3, 2:
                done = self.run_it("mpirun", "-n", "2", COMMAND, "sim", "--report", "r.html", "--",
                                   FIT, "take", NAMES=names, RANKS=str(ranks))
                self.check(self.folder / "r.html", ranks, done.stderr)
                os.utime(self.folder / "r-2.rec", (0, 0))

    def test_one_after_the_other(self):
        """A command waits while another rank writes the page."""
        page, lock = self.folder / "r.html", os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, lock)
        env = harness.environment(False, False) | {"RANK": "0", "WORLD_SIZE": "2"}
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen([COMMAND, "sim", "--report", page, "--", FIT, "take"], env=env,
                              stderr=subprocess.PIPE, text=True) as command:
            lines = iter(command.stderr.readline, "")
            while "next: " not in next(lines):
                pass
            time.sleep(0.3)
            self.assertIsNone(command.poll())
            self.assertFalse(page.exists())
            fcntl.flock(lock, fcntl.LOCK_UN)
            self.assertEqual(list(lines), [f"spillway: report: {page}\n"])
        self.assertEqual(len(self.runs(page)), 1)


if __name__ == "__main__":
    harness.main()
