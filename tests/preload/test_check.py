#!/usr/bin/env python3
"""spillway check, diff and ranks, on recordings and statistics in which every figure is known."""
import json
import random
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import harness
import recording

MIB = harness.MIB
BASE = 0x7f0000000000


def spillway(*arguments):
    """(exit code, stdout, stderr)."""
    done = subprocess.run([harness.COMMAND, *map(str, arguments)], capture_output=True,
                          env=harness.environment(False, False), timeout=120, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


class Training:
    """The recording of a program with a line for each size that is kept, and one that leaks."""
    TEXTS = {8: "main", 16: "/home/me/train.py", 24: "train", 32: "forward",
             40: "/x/site-packages/torch/nn/modules/module.py", 48: "_call_impl"}

    def __init__(self, shift=0, path="/home/me/train.py", mode="tensor"):
        self.writer, self.time, self.next, self.shift = recording.Writer(), 1000, BASE, shift
        for number, text in enumerate(("python train.py", mode, "node7")):
            self.writer.name("about", number, text)
        for number, text in {**self.TEXTS, 16: path}.items():
            self.writer.text(number, text)

    def site(self, number, line):
        self.writer.site(number, "cudaMallocAsync", 8,
                         [(16, 32, line + self.shift), (40, 48, 1790), (16, 24, 90 + self.shift)])

    def alloc(self, site, size):
        self.time += 1000
        self.next += 1 << 30
        self.writer.alloc(self.time, self.next, size, site, stream=1)
        return self.next

    def free(self, address):
        self.time += 1000
        self.writer.free(self.time, address, stream=1)

    def step(self, number):
        self.time += 1000
        self.writer.event("step", self.time, recording.encode(number))


def training(steps=20, leak=0, every=1, warm_up=0, extra=0, draw=None, **more):
    """Line 39 keeps 8 MiB, line 40 comes and goes, line 41 keeps `extra`, line 42 leaks."""
    made = Training(**more)
    for number, line in {5: 39, 7: 40, 9: 41, 11: 42}.items():
        if line != 41 or extra:
            made.site(number, line)
    made.alloc(5, 8 * MIB)
    if extra:
        made.alloc(9, extra)
    for step in range(1, steps + 1):
        size = 4 * MIB if draw is None else draw.randrange(1, 4 * MIB)
        temporary = made.alloc(7, size)
        if leak and step % every == 0 and (not warm_up or step <= warm_up):
            made.alloc(11, leak)
        made.free(temporary)
        made.step(step)
    return made.writer


class Case(harness.Case):
    def put(self, writer, name="r.rec"):
        path = self.folder / name
        path.write_bytes(writer.data())
        return path

    def stats(self, name="s.json", **more):
        path = self.folder / name
        path.write_text(json.dumps({"schema": 1, "pid": 1, "mode": "tensor", "devices": [
            {"ordinal": 0, "live_peak_bytes": 12 * MIB, "spilled_bytes": 3 * MIB,
             "host_peak_bytes": 2 * MIB}], **more}))
        return path


class Check(Case):
    def check(self, path, *limits, code=1, err=""):
        found, out, said = spillway("check", path, *limits)
        self.assertEqual((found, said), (code, err), out)
        self.assertEqual(out == "", code == 0)
        return out.splitlines()

    def test_limits_that_hold(self):
        path = self.put(training())
        self.check(path, "--max-peak", "12MiB", "--max-spill", 0, "--max-growth", "0/step",
                   "--max-site", "train.py:39=8MiB", "--max-site", "nobody=0",
                   "--max-category=weights=0", code=0)

    def test_peak_and_site(self):
        path = self.put(training())
        (line,) = self.check(path, "--max-peak", 12 * MIB - 1)
        self.assertEqual(line, f"{path}: device 0: peak 12 MiB, at most 12.00 MiB allowed; most by "
                               "train.py:39 forward: 8 MiB")
        (line,) = self.check(path, "--max-site", "train.py:40=3MiB",
                             "--max-site", "module.py=12MiB")
        self.assertIn("train.py:40 forward (1 with train.py:40) held 4 MiB, at most 3 MiB", line)
        (line,) = self.check(path, "--max-site", "tr?in.py:*for*=11MiB")
        self.assertIn("(2 with tr?in.py:*for*) held 12 MiB", line)

    def test_spill(self):
        path = self.put(recording.sample())
        code, out, _ = spillway("check", path, "--max-spill", 0)
        self.assertEqual(code, 1)
        self.assertIn("cannot be checked: 5 events were not recorded", out)
        writer = training()
        writer.gauge(90000000, spilled_bytes=5 * MIB, host_bytes=2 * MIB)
        (line,) = self.check(self.put(writer), "--max-spill", "4MiB")
        self.assertIn("5 MiB went to the host, at most 4 MiB allowed; up to 2 MiB", line)

    def test_a_leak_is_named_within_20_steps(self):
        path = self.put(training(steps=20, leak=MIB))
        (line,) = self.check(path, "--max-growth", "1023KiB/step")
        self.assertIn("memory grows by 1 MiB a step (20 marked steps), at most 1023 KiB allowed; "
                      "most by train.py:42 forward: 1 MiB", line)
        self.check(path, "--max-growth", "1MiB/step", code=0)

    def test_a_leak_among_steps_of_all_sizes(self):
        draw = random.Random(1)
        path = self.put(training(steps=60, leak=6 * 65536, every=2, draw=draw))
        (line,) = self.check(path, "--max-growth", "100KiB/step")
        self.assertIn("most by train.py:42 forward", line)
        found = json.loads(spillway("report", path, "--json")[1])["devices"][0]
        self.assertAlmostEqual(found["growth_bytes_per_step"], 3 * 65536, delta=65536 / 2)

    def test_what_is_filled_once_does_not_leak(self):
        self.check(self.put(training(steps=30, leak=MIB, warm_up=10)), "--max-growth", 0, code=0)

    def test_too_few_steps(self):
        (line,) = self.check(self.put(training(steps=7, leak=MIB)), "--max-growth", 0)
        self.assertIn("cannot be checked: 7 marked steps were found, and 8 are needed", line)

    def test_category(self):
        (line,) = self.check(self.put(training()), "--max-category", "activations=1MiB")
        self.assertIn("activations held 12 MiB, at most 1 MiB allowed (0 B were unknown", line)
        (line,) = self.check(self.put(training(mode="segment")), "--max-category", "weights=1MiB")
        self.assertIn("in tensor mode only", line)

    def test_increase_names_the_line(self):
        before = self.put(training(shift=7), "before.rec")
        after = self.put(training(extra=64 * MIB), "after.rec")
        (line,) = self.check(after, "--base", before, "--max-increase", "1MiB")
        self.assertIn("the peak rose by 64 MiB from 12 MiB to 76 MiB, at most 1 MiB allowed; most "
                      "by train.py:41 forward: +64 MiB", line)
        self.check(before, "--base", after, "--max-increase", "0", code=0)

    def test_statistics(self):
        path = self.stats()
        self.check(path, "--max-peak", "12MiB", "--max-spill", "3MiB", code=0)
        self.assertEqual(len(self.check(path, "--max-peak", "1MiB", "--max-spill", 0)), 2)
        (line,) = self.check(path, "--max-site", "a=1")
        self.assertIn("the file has no call sites", line)
        for limit in ("--max-growth=1", "--max-category=weights=1"):
            code, _, err = spillway("check", path, limit)
            self.assertEqual((code, "expected a recording" in err), (2, True), err)

    def test_json_and_junit(self):
        path, junit = self.put(training(leak=MIB)), self.folder / "j.xml"
        code, out, _ = spillway("check", path, "--json", "--junit", junit, "--max-peak", "1GiB",
                                "--max-growth", "1KiB/step", "--max-site", "<&\"'\x01>=1")
        found = json.loads(out)
        self.assertEqual((code, found["passed"]), (1, False))
        self.assertEqual([row["passed"] for row in found["checks"]], [True, False, True])
        self.assertEqual(found["checks"][1]["site"], "train.py:42 forward")
        suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("3", "1"))
        cases = suite.findall("testcase")
        self.assertEqual([case.find("failure") is None for case in cases], [True, False, True])
        self.assertIn("<&\"'", cases[2].get("name"))
        self.assertIn("train.py:42 forward", cases[1].find("failure").get("message"))

    def test_a_prefix_is_said(self):
        writer = training()
        writer.complete = 0
        self.check(self.put(writer), "--max-peak", "12MiB", code=0,
                   err=f"spillway: check: {self.folder}/r.rec: the program was killed, or is still "
                       "running: the recording has no end\n")

    def test_bad_usage(self):
        path = self.put(training())
        for arguments, said in (([], "expected a limit"), (["--max-peak", "x"], "expected a size"),
                                (["--max-peak", "8%"], "expected a size"),
                                (["--max-growth", "1MiB/stop"], "expected a size"),
                                (["--max-site", "x"], "PATTERN=SIZE"),
                                (["--max-category", "weight=1"], "did you mean weights?"),
                                (["--max-increase", "1"], "--base"),
                                (["--max-peak", "1", "--base", path], "--max-increase"),
                                (["--max-peak", "1", path], "unexpected")):
            code, out, err = spillway("check", path, *arguments)
            self.assertEqual((code, out, said in err), (2, "", True), err)
        code, out, err = spillway("check", self.folder / "none", "--max-peak", 1)
        self.assertEqual((code, out, "No such file" in err), (1, "", True), err)

    def test_neither_one_nor_the_other(self):
        path = self.folder / "notes.txt"
        path.write_text("x")
        code, out, err = spillway("check", path, "--max-peak", "1GiB")
        self.assertEqual((code, out, err.count("\n")), (1, "", 1), err)
        self.assertIn("notes.txt: neither a recording nor a statistics file: it is not valid", err)


class Diff(Case):
    def diff(self, before, after, *arguments):
        code, out, err = spillway("diff", before, after, *arguments)
        self.assertEqual((code, err), (0, ""))
        return out

    def sites(self, before, after):
        (device,) = json.loads(self.diff(before, after, "--json"))["devices"]
        return [(row["change_bytes"], row["moved"],
                 *(row[side] and row[side]["label"] for side in ("before", "after")))
                for row in device["sites"]]

    def test_the_same(self):
        path = self.put(training())
        out = self.diff(path, path)
        self.assertRegex(out, r"peak +12 MiB +12 MiB +0\n")
        self.assertIn("2 call sites held the same", out)
        self.assertNotIn("at the peak by", out)

    def test_moved_lines_match(self):
        """Also from another folder, and with a new line between them."""
        before = self.put(training(), "before.rec")
        after = self.put(training(shift=7, path="/ci/build/train.py"), "after.rec")
        self.assertEqual({row[:2] for row in self.sites(before, after)}, {(0, True)})
        self.assertIn("2 call sites held the same", self.diff(before, after))
        after = self.put(training(shift=7, extra=64 * MIB), "after.rec")
        self.assertEqual(self.sites(before, after),
                         [(64 * MIB, False, None, "train.py:48 forward"),
                          (0, True, "train.py:39 forward", "train.py:46 forward"),
                          (0, True, "train.py:40 forward", "train.py:47 forward")])
        out = self.diff(before, after)
        self.assertRegex(out, r"peak +12 MiB +76 MiB +\+64 MiB\n")
        self.assertRegex(out, r"\+64 MiB +0 B +64 MiB  train.py:48 forward  \(new\)\n")
        self.assertRegex(self.diff(after, before), r"-64 MiB +64 MiB +0 B  train.py:48 forward  "
                                                   r"\(gone\)\n")

    def test_categories_and_growth(self):
        before = self.put(training(), "before.rec")
        after = self.put(training(leak=MIB), "after.rec")
        out = self.diff(before, after)
        self.assertRegex(out, r"activations +12 MiB +32 MiB +\+20 MiB\n")
        self.assertRegex(out, r"unknown +0 B +0 B +0\n")
        self.assertRegex(out, r"growth a step +0 B +1 MiB +\+1 MiB\n")
        self.assertNotIn("activations", self.diff(before, self.stats()))

    def test_statistics(self):
        frame = {"file": "/a/train.py", "function": "f", "line": 3}
        site = {"id": 1, "device": 0, "device_peak_bytes": 5 * MIB, "peak_bytes": 5 * MIB,
                "python": [frame], "native": [], "api": "cudaMalloc"}
        before = self.stats("a.json", sites=[site])
        moved = {**site, "python": [{**frame, "line": 9}], "device_peak_bytes": 6 * MIB}
        after = self.stats("b.json", sites=[moved])
        self.assertEqual(self.sites(before, after),
                         [(MIB, True, "train.py:3 f", "train.py:9 f")])
        self.assertIn("was train.py:3 f", self.diff(before, after))

    def test_top(self):
        before, after = self.put(training(), "a"), self.put(training(leak=MIB, extra=MIB), "b")
        out = self.diff(before, after, "--top", 1)
        self.assertIn("and 1 more that differ (--top 2 shows them)", out)

    def test_bad_usage_and_files(self):
        path = self.put(training())
        for arguments in ([path], [path] * 3, [path, path, "--top", "x"], [path, path, "-x"]):
            self.assertEqual(spillway("diff", *arguments)[0], 2)
        for other in ("none", "bad"):
            (self.folder / "bad").write_bytes(b"SPWREC\r\nnothing")
            code, out, err = spillway("diff", path, self.folder / other)
            self.assertEqual((code, out, err.startswith("spillway: diff: ")), (1, "", True), err)


class Ranks(Case):
    FRAME = {"file": "/a/train.py", "function": "f", "line": 3}

    def ranks(self, *arguments):
        code, out, err = spillway("ranks", *arguments)
        self.assertEqual((code, err), (0, ""))
        return out

    def rank(self, rank, *held, **more):
        """The statistics of a rank: line 3 holds the first of these sizes, 4 the second, ..."""
        sites = [{"id": i + 1, "device": 0, "device_peak_bytes": size, "peak_bytes": size,
                  "python": [{**self.FRAME, "line": 3 + i}], "native": [], "api": "cudaMalloc"}
                 for i, size in enumerate(held) if size]
        return self.stats(f"{rank}.json", sites=sites, rank=rank,
                          devices=[{"live_peak_bytes": sum(held), "host_peak_bytes": MIB,
                                    "spilled_bytes": 2 * MIB}], **more)

    def test_merged(self):
        """In the order of the ranks, whatever the order of the files; a line that a rank lacks
        counts as nothing there."""
        files = [self.rank(2, 8 * MIB, 0), self.rank(0, 8 * MIB, 4 * MIB),
                 self.rank(1, 8 * MIB, 32 * MIB)]
        found = json.loads(self.ranks("--json", *files))
        self.assertEqual([(row["rank"], row["peak_bytes"] // MIB) for row in found["ranks"]],
                         [(0, 12), (1, 40), (2, 8)])
        self.assertEqual([(row["label"], row["least_bytes"] // MIB, row["most_bytes"] // MIB,
                           row["sum_bytes"] // MIB, row["most_at"], row["ranks_with_it"])
                          for row in found["sites"]],
                         [("train.py:4 f", 0, 32, 36, 1, 2), ("train.py:3 f", 8, 8, 24, 0, 3)])
        out = self.ranks(*files)
        self.assertIn("peak of 3 ranks: mean 20 MiB, most 40 MiB (rank 1), 2.00 times the mean\n",
                      out)
        self.assertRegex(out, r" 0 B +12 MiB +32 MiB +1  train.py:4 f\n")
        self.assertIn("1 call site held the same on every rank\n", out)

    def test_equal_ranks(self):
        out = self.ranks(self.rank(0, MIB), self.rank(1, MIB))
        self.assertIn("most 1 MiB (rank 0), 1.00 times the mean\n", out)
        self.assertNotIn("at the ranks' peaks by", out)

    def test_recordings_and_one_process_with_two_devices(self):
        out = self.ranks(self.put(training()), self.stats("two.json", devices=[
            {"live_peak_bytes": 3 * MIB}, {"live_peak_bytes": 5 * MIB}]))
        self.assertIn("peak of 3 ranks", out)
        self.assertRegex(out, r" - +1 +5 MiB ")

    def test_top(self):
        out = self.ranks("--top", 1, self.rank(0, MIB, MIB), self.rank(1, 2 * MIB, 3 * MIB))
        self.assertIn("and 1 more that differ (--top 2 shows them)", out)
        self.assertIn("train.py:4", out)
        self.assertNotIn("train.py:3", out)

    def test_bad_usage_and_files(self):
        path = self.rank(0, MIB)
        for arguments in ([], [path, "--top", "x"], [path, "-x"]):
            code, out, err = spillway("ranks", *arguments)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        code, out, err = spillway("ranks", self.folder / "none")
        self.assertEqual((code, out, err.startswith("spillway: ranks: ")), (1, "", True), err)
        for command in (["ranks"], ["sites"], ["check", "--max-peak", "1GiB"]):
            code, out, err = spillway(*command, self.folder)
            self.assertEqual((code, out, err), (1, "", f"spillway: {command[0]}: {self.folder}: Is "
                                                       "a directory\n"))

    def test_diff_of_two_ranks(self):
        """It says what is meant for that."""
        code, _, err = spillway("diff", self.rank(0, MIB), self.rank(1, MIB))
        self.assertEqual(code, 0)
        self.assertRegex(err, r"^spillway: diff: note: these are ranks 0 and 1, .*spillway ranks")
        self.assertEqual(spillway("diff", self.rank(1, MIB), self.rank(1, MIB))[2], "")

    def test_files_that_are_left_out(self):
        """Each is named, with the reason; the others are merged."""
        unused = self.stats("unused.json", devices=[{"live_peak_bytes": 0}])
        launcher = self.stats("launcher.json", devices=[{"live_peak_bytes": MIB}])
        code, out, err = spillway("ranks", unused, self.rank(0, MIB), launcher, self.rank(1, MIB))
        self.assertEqual((code, err), (0, f"spillway: ranks: {unused}: left out: no device memory "
                                          f"was used\nspillway: ranks: {launcher}: left out: its "
                                          "process had no rank\n"))
        self.assertIn("peak of 2 ranks: ", out)
        code, out, err = spillway("ranks", self.folder / "none", self.rank(0, MIB))
        self.assertEqual((code, err.count("\n")), (1, 1), err)
        self.assertIn("peak of 1 rank: ", out)
        code, out, err = spillway("ranks", unused)
        self.assertEqual((code, out), (1, ""))

    def test_two_files_of_a_rank(self):
        path = self.rank(1, MIB)
        code, _, err = spillway("ranks", self.rank(0, MIB), path, path)
        self.assertEqual((code, err), (0, f"spillway: ranks: note: {path} and {path} are both of "
                                          "rank 1, and each is counted as a rank\n"))


if __name__ == "__main__":
    unittest.main()
