#!/usr/bin/env python3
"""`spillway run --fit`: the first run learns, the next ones apply what it has chosen."""
import json
import os
import re
import sys
import unittest

import harness
from harness import COMMAND

# Four kinds of blocks of 32 MiB, of which one is used once in a step, and the others six times.
# Without MORE, there are three.
SCRIPT = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, size = ctypes.c_void_p(), ctypes.c_size_t(32 << 20)
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), int(os.environ.get("LOCAL_RANK", 0)))
cuda.cuCtxSetCurrent(context)
state, weights, activation = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
once = int(os.environ.get("ONCE", 1))
more = [ctypes.c_uint64() for _ in range(int(os.environ.get("MORE", 0)))]
cuda.cuMemAlloc_v2(ctypes.byref(state), size)
cuda.cuMemAlloc_v2(ctypes.byref(weights), size)
for block in more:
    cuda.cuMemAlloc_v2(ctypes.byref(block), size)
for _ in range(12):
    if cuda.cuMemAlloc_v2(ctypes.byref(activation), size) != 0:
        sys.exit(7)
    uses = (state, once), (weights, 6), (activation, 6), *((block, 6) for block in more)
    for block, times in uses:
        for _ in range(times):
            cuda.cuMemsetD8Async(block, 0, size, None)
    cuda.cuMemFree_v2(activation)
cuda.cuCtxSynchronize()
print("done", *sys.argv[1:])
sys.exit(int(os.environ.get("CODE", 0)))
"""
BEGIN = "spillway: run --fit: "
CHOSEN = BEGIN + "from the next run on: "
APPLIED = BEGIN + "the kept choice is applied: "


@unittest.skipIf(harness.SANITIZED, "Python is not built with the sanitizer")
class RunFit(harness.Case):
    def setUp(self):
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text(SCRIPT)
        self.cache = self.folder / "cache"

    def environment(self, **more):
        options = {key: more.pop(key) for key in list(more) if key.startswith("SIM_")}
        env = harness.environment(False, SUMMARY="off", **{"SIM_MEMORY": "80MiB", **options})
        return {**env, "XDG_CACHE_HOME": str(self.cache), **more}

    def go(self, *words, flags=(), status=0, **more):
        """Runs the script with --fit. Returns the lines about it, and whether it spilled."""
        result = self.run_command(
            [COMMAND, "run", "--fit", *flags, "--", sys.executable, "train.py", *words],
            self.environment(**more))
        self.assertEqual(result.status, status, result.stderr)
        if status != 7:
            self.assertEqual(result.stdout, " ".join(["done", *words]) + "\n")
        lines = [line for line in result.stderr.splitlines() if line.startswith(BEGIN)]
        return lines, "device 0 is full" in result.stderr

    def kept(self):
        """The kept choices, and nothing else is left there."""
        folder = self.cache / "spillway" / "fit"
        names = sorted(os.listdir(folder)) if folder.exists() else []
        self.assertTrue(all(re.fullmatch(r"[0-9a-f]{16}-[0-9a-f]{16}\.json", name)
                            for name in names), names)
        return [folder / name for name in names]

    def policy(self, *words):
        return self.run_command([COMMAND, "policy", *words], self.environment())

    def test_flow(self):
        lines, spilled = self.go()
        self.assertTrue(spilled)
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], re.escape(CHOSEN) + r"20 MiB placed on the host; predicted: a "
                         r"peak of 76 MiB in 80 MiB$")
        (path,) = self.kept()
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.policy("check", path).stderr, "")
        (rule,) = json.loads(path.read_text())["rules"]
        self.assertEqual(rule["action"], {"host_share": "60%", "movable": False})
        for _ in range(2):
            lines, spilled = self.go()
            self.assertFalse(spilled)
            self.assertEqual(lines, [APPLIED + "20 MiB placed on the host; predicted: a peak of "
                                     "76 MiB in 80 MiB"])
        self.assertEqual(self.kept(), [path])

    def test_it_is_for_this_command(self):
        self.go()
        for words, options in ((["8"], {}), ([], {"flags": ["--limit", "79MiB"]}),
                               ([], {"SIM_MEMORY": "78MiB"})):
            with self.subTest(words=words, options=options):
                lines, spilled = self.go(*words, **options)
                self.assertTrue(lines[0].startswith(CHOSEN))
                self.assertTrue(spilled)
        self.assertEqual(len(self.kept()), 4)
        self.assertTrue(self.go()[0][0].startswith(APPLIED))

    def test_it_fits(self):
        lines, spilled = self.go(SIM_MEMORY="200MiB")
        self.assertEqual(lines, [BEGIN + "it fits as it is: nothing is chosen"])
        self.assertFalse(spilled)
        self.assertEqual(self.kept(), [])

    def test_script_has_changed(self):
        self.go()
        self.script.write_text("# one more line\n" + SCRIPT)
        lines, spilled = self.go()
        self.assertTrue(spilled)
        self.assertEqual(lines[0], BEGIN + "train.py has changed: the choice is made again")
        self.assertTrue(lines[1].startswith(CHOSEN))
        lines, spilled = self.go()
        self.assertFalse(spilled)
        self.assertEqual([line.startswith(APPLIED) for line in lines], [True])

    def test_more_spills_than_predicted(self):
        """The next choice leaves more room. A second failure is the last one."""
        self.go()
        lines, spilled = self.go(MORE="1")
        self.assertTrue(spilled)
        self.assertEqual(lines[1:], [BEGIN + "the kept choice did not do (more spilled than "
                                     "predicted): the next run makes it again"])
        lines, spilled = self.go()
        self.assertTrue(spilled)
        self.assertRegex(lines[0], re.escape(CHOSEN) + "46 MiB placed on the host")
        lines, spilled = self.go()
        self.assertFalse(spilled)
        lines, _ = self.go(MORE="2")
        self.assertIn("no further one is made", lines[1])
        lines, spilled = self.go()
        self.assertTrue(spilled)
        self.assertEqual(len(lines), 1)
        self.assertIn("no choice has done for this command: it runs without rules", lines[0])
        self.assertEqual(self.policy("forget", "--all").status, 0)
        self.assertTrue(self.go()[0][0].startswith(CHOSEN))

    def test_the_program_fails(self):
        """An exit code that it has without the rules, too, says nothing against them."""
        self.assertTrue(self.go(status=3, CODE="3")[0][0].startswith(CHOSEN))
        for _ in range(2):
            lines, _ = self.go(status=3, CODE="3")
            self.assertEqual([line.startswith(APPLIED) for line in lines], [True])
        lines, _ = self.go(status=4, CODE="4")
        self.assertIn("the kept choice did not do (the program failed, and it did not without",
                      lines[1])

    def test_refused(self):
        """Without spilling, no step is complete, and no model is known that could recompute."""
        lines, _ = self.go(flags=["--spill", "off"], status=7)
        self.assertEqual(len(lines), 1)
        self.assertIn("no whole step was seen", lines[0])
        self.assertEqual(self.kept(), [])

    def test_trouble_leaves_a_plain_run(self):
        """Folders that are not the user's own, and files that are not a choice."""
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (self.cache / "spillway").mkdir(parents=True, mode=0o700)
        fit = self.cache / "spillway" / "fit"
        fit.symlink_to(elsewhere)
        lines, spilled = self.go()
        self.assertTrue(spilled)
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], f"{re.escape(str(fit))} is a link, or .*: nothing can be kept, "
                         "and it runs without --fit$")
        self.assertEqual(list(elsewhere.iterdir()), [])
        fit.unlink()
        fit.mkdir()
        fit.chmod(0o777)
        self.assertIn("others may write it", self.go()[0][0])
        self.assertEqual(list(fit.iterdir()), [])
        fit.chmod(0o700)
        self.go()
        (path,) = self.kept()
        path.write_text("{")
        lines, _ = self.go()
        self.assertIn("is no kept choice", lines[0])
        self.assertTrue(lines[1].startswith(CHOSEN))
        lines, _ = self.go(XDG_CACHE_HOME="", HOME="nowhere")
        self.assertIn("there is no cache folder", lines[0])

    def test_obstacles(self):
        policy = self.folder / "policy.json"
        policy.write_text('{"version": 1, "rules": []}')
        for options, text in (({"flags": ["--policy", policy]}, "a policy is given"),
                              ({"flags": ["--mode", "observe"]}, "policies have no effect"),
                              ({"RANK": "0", "WORLD_SIZE": "2"}, "a rank of a job")):
            with self.subTest(text):
                status = 7 if "observe" in str(options) else 0
                lines, _ = self.go(status=status, **options)
                self.assertEqual([text in line for line in lines], [True], lines)
                self.assertEqual(self.kept(), [])
        self.assertEqual(self.go(RANK="1", WORLD_SIZE="2")[0], [])

    def test_several_processes(self):
        """The choice would be about one of them."""
        for between in ";", "&":
            with self.subTest(between):
                result = self.run_command(
                    [COMMAND, "run", "--fit", "--", "sh", "-c", f"{sys.executable} train.py "
                     f"{between} {sys.executable} train.py; wait"], self.environment())
                self.assertEqual(result.stdout, "done\ndone\n")
                self.assertIn(BEGIN + "2 processes used a device, and they are not the ranks of a "
                              "job, one each: nothing is chosen\n", result.stderr)
                self.assertEqual(self.kept(), [])

    def go_ranks(self, *variables, world=2):
        """Runs ranks beside each other, each with these variables. Returns the lines about --fit,
        and how many ranks spilled."""
        ranks = [f"env RANK={i} LOCAL_RANK={i} WORLD_SIZE={world} {words} {sys.executable} train.py"
                 for i, words in enumerate(variables)]
        result = self.run_command([COMMAND, "run", "--fit", "--", "sh", "-c",
                                   " & ".join(ranks) + "; wait"],
                                  self.environment(SIM_DEVICES=str(len(ranks))))
        self.assertEqual(result.stdout.split(), ["done"] * len(ranks))
        return ([line for line in result.stderr.splitlines() if line.startswith(BEGIN)],
                len(re.findall(r"device \d is full", result.stderr)))

    def test_ranks(self):
        """One choice for all ranks, and one line."""
        lines, spilled = self.go_ranks("A=", "A=")
        self.assertEqual(spilled, 2)
        self.assertEqual(lines, [CHOSEN + "on each of 2 ranks, 20 MiB placed on the host; "
                                 "predicted: a peak of 76 MiB in 80 MiB"])
        (path,) = self.kept()
        self.assertEqual(len(json.loads(path.read_text())["rules"]), 1)
        lines, spilled = self.go_ranks("A=", "A=")
        self.assertEqual(([line.startswith(APPLIED) for line in lines], spilled), ([True], 0))

    def test_ranks_that_differ(self):
        """All get the rules that each of them needs: here, those of the second rank."""
        for variables in ("A=", "MORE=1"), ("MORE=1", "A="):
            lines, spilled = self.go_ranks(*variables)
            self.assertEqual(spilled, 2)
            self.assertEqual(len(lines), 1)
            self.assertTrue(lines[0].startswith(CHOSEN + "on each of 2 ranks, "), lines)
            lines, spilled = self.go_ranks(*variables)
            self.assertEqual(([line.startswith(APPLIED) for line in lines], spilled), ([True], 0))

    def test_some_of_the_ranks(self):
        """Others, on another machine, would run with other rules."""
        lines, _ = self.go_ranks("A=", "A=", world=4)
        self.assertEqual(lines, [BEGIN + "2 of the 4 ranks of the job ran here, and it needs all: "
                                 "nothing is chosen"])
        self.assertEqual(self.kept(), [])

    def test_spilling_costs_no_more(self):
        """Memory that is used all the time is no better on the host."""
        lines, spilled = self.go(ONCE="6")
        self.assertEqual(lines, [BEGIN + "spilling alone costs no more than any rules: nothing is "
                                 "chosen"])
        self.assertTrue(spilled)
        self.assertEqual(self.kept(), [])

    def test_own_recording_is_kept(self):
        self.go(flags=["--record", self.folder / "r.rec"])
        self.assertTrue((self.folder / "r.rec").exists())
        self.assertEqual(len(self.kept()), 1)

    def test_explain_and_forget(self):
        words = sys.executable, "train.py"
        done = self.policy("explain", "--fit", "--", *words)
        self.assertEqual((done.status, done.stdout), (1, ""))
        self.assertEqual(done.stderr,
                         "spillway: policy: nothing is kept for this command in this folder\n")
        self.go()
        self.go("8")
        (path,) = [path for path in self.kept() if "train.py 8" not in path.read_text()]
        done = self.policy("explain", "--fit", "--", *words)
        self.assertEqual((done.status, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], str(path))
        for text in (f"    command: {sys.executable} train.py", f"    folder: {self.folder}",
                     "    script: train.py", "    rule 1.train.py-11--module-"):
            self.assertIn(text, lines)
        self.assertRegex(done.stdout, r"    device: NVIDIA H100 .*, 80 MiB\n")
        self.assertRegex(done.stdout, "    chosen: 20 MiB placed on the host; predicted: ")
        self.assertEqual(self.policy("explain", "--fit").stdout.count("chosen: "), 2)
        self.assertEqual(self.policy("forget", "--", *words).stdout, f"removed: {path}\n")
        self.assertEqual(self.policy("forget", "--", *words).status, 1)
        self.assertEqual(self.policy("explain", "--fit").stdout.count("chosen: "), 1)
        self.assertEqual(self.policy("forget", "--all").status, 0)
        self.assertEqual(self.kept(), [])
        for bad in (["forget"], ["forget", "--all", "--", "a"], ["check", "--fit"],
                    ["explain", "--fit", "--site", "a"], ["explain", "--all"]):
            with self.subTest(bad):
                self.assertEqual(self.policy(*bad).status, 2)


if __name__ == "__main__":
    harness.main()
