#!/usr/bin/env python3
"""PyTorch's private pools. While one is open, PyTorch does not free its cache and ask again after a
refusal, so the first request must be served."""
import sys
import tempfile
import unittest

import other_version
import wheel
from running import Run

# The block that was freed cannot serve the larger request (pytorch#159674).
MEM_POOL = """
import torch
pool = torch.cuda.MemPool()
for gib in (6, 7):
    with torch.cuda.use_mem_pool(pool):
        kept = torch.empty(gib << 30, dtype=torch.uint8, device="cuda")
    del kept
print("done", torch.cuda.memory_reserved() >> 30)
"""
# What is warmed up allocates in the pool of the graphs.
GRAPH_TREES = """
import torch
kept = [torch.ones(32 << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]
compiled = torch.compile(lambda x: (x @ x).relu() + 1, mode="reduce-overhead")
x = torch.ones(2048, 2048, device="cuda")
with torch.no_grad():
    for _ in range(4):
        y = compiled(x)
print("done", torch.cuda.memory_allocated() >> 20)
"""
# The cache of the other pools is not freed either.
BESIDE = """
import threading
import torch
kept = torch.ones(5 << 30, dtype=torch.uint8, device="cuda")
pool = torch.cuda.MemPool()
opened, done = threading.Event(), threading.Event()
def other():
    with torch.cuda.use_mem_pool(pool):
        opened.set()
        done.wait()
thread = threading.Thread(target=other)
thread.start()
opened.wait()
try:
    more = torch.empty(8 << 30, dtype=torch.uint8, device="cuda")
finally:
    done.set()
    thread.join()
print("done", torch.cuda.memory_allocated() >> 30)
"""


class PrivatePools(unittest.TestCase):
    interpreter = None

    def run_text(self, text, memory, mode):
        return Run([self.interpreter, "-c", text], ["--memory", memory, "--mode", mode])

    def check(self, run, printed):
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.stdout.strip(), printed)
        self.assertRegex(run.stderr, "verdict: does not fit in .*, but runs by spilling")
        self.assertNotIn("out of memory on device", run.stderr)

    def test_a_refusal_that_was_final(self):
        """It is reported as such, with what held the memory: where PyTorch's version is not known,
        nothing tells that another thread's pool keeps PyTorch from asking again."""
        with tempfile.TemporaryDirectory() as name:
            other_version.make(self.interpreter, name, "9.9.0")
            run = Run([self.interpreter, "-c", BESIDE], ["--memory", "12GiB", "--verbose"],
                      {"PYTHONPATH": name})
        if run.status == 0:  # PyTorch 2.15 asks again
            self.assertIn("verdict: does not fit in 12 GiB, but runs by spilling", run.stderr)
            return
        self.assertIn("torch.OutOfMemoryError", run.stderr)
        before = run.stderr.partition("Traceback")[0]
        self.assertEqual(before.count("out of memory on device 0: requested 8 GiB"), 1)
        self.assertRegex(before, r"5 GiB in +1 block +<string>:4 <module>")
        self.assertIn("verdict: does not fit in 12 GiB: allocation 2 on device 0, 8 GiB by "
                      "cudaMalloc", run.stderr)

    def test_spills(self):
        programs = [(MEM_POOL, "12GiB", "done 13"), (BESIDE, "12GiB", "done 13")]
        if wheel.why_not_triton(self.interpreter) is None:
            programs.append((GRAPH_TREES, "200MiB", "done 144"))
        for text, memory, printed in programs:
            for mode in ("tensor", "segment"):
                with self.subTest(printed, mode=mode):
                    self.check(self.run_text(text, memory, mode), printed)


if __name__ == "__main__":
    sys.exit(wheel.run_tests(PrivatePools))
