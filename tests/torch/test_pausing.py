#!/usr/bin/env python3
"""`spillway pause` of the ranks of a training, whose collectives wait for each other."""
import re
import subprocess
import sys
import unittest

import wheel
from running import HERE, ROOT, launcher

RANKS, STEPS, PAUSES = 2, 600, 5


class Pausing(unittest.TestCase):
    interpreter = None

    def command(self, name, *words):
        done = subprocess.run([ROOT / "spillway", name, *words], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def start(self, *words):
        flags = ["--devices", str(RANKS), "--control", "on", "--check", "on", "--summary", "off"]
        program = subprocess.Popen(
            [*launcher(flags), self.interpreter, "-m", "torch.distributed.run", "--standalone",
             "--nproc-per-node", str(RANKS), HERE / "data_parallel_nccl.py", "--steps", str(STEPS),
             *words], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(program.communicate)
        self.addCleanup(program.terminate)
        return program

    def await_step(self, program, step):
        """Reads until a rank has done this step. The numbers of the processes, by rank."""
        pids = {}
        for line in program.stdout:
            found = re.match(r"rank (\d+) pid (\d+)", line)
            if found:
                pids[found[1]] = found[2]
            if f" step {step} " in line:
                return pids
        return self.fail(program.stderr.read())

    def pause_often(self, *words, to=()):
        program = self.start(*words)
        pids = self.await_step(program, 1).values()
        self.assertEqual(len(pids), RANKS)
        for i in range(PAUSES):
            said = self.command("pause", *to, *pids)
            self.assertEqual(said.count("the program waits for spillway resume"), RANKS, said)
            self.assertEqual(self.command("resume", *pids).count("went back"), RANKS)
            self.await_step(program, 20 * (i + 1))
        out, err = program.communicate(timeout=600)
        self.assertEqual(program.returncode, 0, err)
        self.assertEqual(out.count(" done"), RANKS)
        self.assertNotIn("SPILLWAY_CHECK", err)

    def test_copies_of_the_model(self):
        self.pause_often()

    def test_shards_of_the_model(self):
        self.pause_often("--sharded")

    def test_a_file(self):
        self.pause_often(to=("--to", "/tmp"))


if __name__ == "__main__":
    sys.exit(wheel.run_tests(Pausing))
