#!/usr/bin/env python3
"""The verdict of `spillway sim`: whether a program fits, what it took, and what was missing."""
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import time
import unittest

import harness
from harness import COMMAND, PROGRAMS

FIT = PROGRAMS / "fit"
BARE = ("--no-pool",)
POOLED = ("--spill", "off")


class Fit(harness.Case):
    def sim(self, *words, flags=(), status=0, memory="256MiB", program=FIT, end=0, **options):
        """Runs the program; returns the lines of the verdict in full, without their beginning, and
        `end` others as they are. self.brief has the two lines of it that are never longer."""
        size = () if memory is None else ("--memory", memory)
        command = [COMMAND, "sim", "--verbose", *size, *flags, "--", program, *words]
        result = self.run_command(command, harness.environment(False, False, **options))
        self.assertEqual(result.status, status, result.stderr)
        if program == FIT:
            self.assertEqual(result.stdout.split(), list(words))
        lines = result.stderr.splitlines()
        begin = [i for i, line in enumerate(lines) if line.startswith("spillway: verdict: ")]
        self.assertEqual(len(begin), 1, result.stderr)
        end += "--require" in flags and status == 1
        last = len(lines) - end
        for line in lines[begin[0] + 1:last]:
            self.assertTrue(line.startswith("spillway:   "), line)
        found = [line[len("spillway: "):].strip() for line in lines[begin[0]:last]]
        self.brief = found[1:3]
        self.assertRegex(self.brief[0], "^(peak|why): ")
        self.assertRegex(self.brief[1], "^next: ")
        return found[:1] + found[3:] + lines[last:]

    def test_fits(self):
        for flags in (BARE, POOLED):
            with self.subTest(flags):
                lines = self.sim("take", "take-ordered", "give", "take", flags=flags)
                self.assertRegex(lines[0], r"^verdict: fits in 256 MiB, 1\d+ MiB to spare$")
                self.assertRegex(lines[1], r"^fit take \(pid \d+\) on device 0 \(256 MiB\): "
                                           r"peak live 128 MiB[ ,;]")
        self.assertIn(" (allocated in stream order: up to 80 MiB);", lines[1])
        self.assertRegex(lines[2], r"^a real h100-80g needs about \d+ MiB, at most 8[\d.]+ MiB: "
                                   r"128 MiB to 130\.61 MiB for the program, \d+ MiB to \d+ MiB "
                                   r"for CUDA context, code .* \(from published figures\);")

    def test_does_not_fit(self):
        """15 blocks fit, with 8 KiB too little for the sixteenth."""
        memory = str((256 << 20) - 8192)
        for flags, words, api in ((BARE, "fill", "cuMemAlloc"), (POOLED, "fill", "cudaMalloc"),
                                  (POOLED, "fill-ordered", "cudaMallocAsync"),
                                  (BARE, "fill-ordered", "cuMemAllocAsync")):
            with self.subTest(flags=flags, words=words):
                lines = self.sim(words, "fail", flags=flags, status=3, memory=memory)
                self.assertRegex(lines[0], rf"^verdict: does not fit in 255\.99 MiB: allocation 16 "
                                           rf"on device 0, 16 MiB by {api} \(thread fit, \d+\) "
                                           r"failed: for it, 8 KiB were missing; the total need of "
                                           r"the program is not known \(sim --compare finds "
                                           r"it\)$")
                self.assertRegex(lines[2], r"^until it failed, it would have taken of a real "
                                           r"h100-80g about \d+ MiB, at most [\d.]+ MiB: ")
                self.assertIn("peak live 240 MiB", lines[1])

    def test_fits_with_the_host(self):
        lines = self.sim("take", "take-ordered", memory="96MiB")
        self.assertRegex(lines[0], r"^verdict: does not fit in 96 MiB, but runs by spilling: up to "
                                   r"\d+ MiB on the host$")
        self.assertRegex(lines[2], r"^in the whole run \d+ MiB went to the host and 0 B came "
                                   r"back: at "
                                   r"least [\d.e-]+ s on a link of 63 GB/s in each direction$")
        self.assertRegex(lines[3], r"^to run without spilling, a real h100-80g needs at least "
                                   r"about ")

    def test_placed_on_the_host_by_a_policy(self):
        """That is no spilling, and the device has room for the rest, or does not."""
        policy, path = self.folder / "policy.json", self.folder / "verdict.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "h", "match": {"size": {"min": "64MiB"}}, "action": {"placement": "host"}}]}))
        flags = ("--policy", policy, "--json", path, "--require", "fit")
        for memory, too in (("256MiB", "; it would fit without the policy too"), ("96MiB", "")):
            lines = self.sim("take", "take-ordered", flags=flags, memory=memory)
            self.assertRegex(lines[0], rf'^verdict: fits in {memory[:-3]} MiB, with 80 MiB placed '
                                       rf'on the host by rule "h", \d+ MiB to spare{too}$')
            self.assertRegex(lines[2], "^80 MiB are on the host because the policy says so, .* at "
                                       "least 0.0013 s ")
            self.assertNotIn("spill", "".join(lines))
            found = json.loads(path.read_text())
            self.assertEqual(found["verdict"], "fits")
            self.assertEqual(found["placed_by_rules"],
                             [{"name": "h", "host_peak_bytes": 80 << 20}])
            device, = found["devices"]
            self.assertEqual((device["placed_peak_bytes"], device["spilled_bytes"]), (80 << 20, 0))
            self.assertLess(device["program_bytes"], 60 << 20)
        lines = self.sim("take", "take-ordered", flags=flags, memory="32MiB", status=1)
        self.assertRegex(lines[0], r"^verdict: does not fit in 32 MiB, but runs by spilling: up to "
                                   r"\d+ MiB on the host, of that up to 80 MiB placed there by "
                                   r'rule "h"$')

    def test_thread(self):
        for flags in (BARE, POOLED):
            lines = self.sim("thread", "fail", flags=flags, status=3)
            self.assertRegex(lines[0], r"allocation 17 .* \(thread stuffer, \d+\)")

    def test_however_it_ends(self):
        for flags in (BARE, POOLED):
            for word, status in (("leave", 4), ("kill", 128 + signal.SIGKILL)):
                with self.subTest(flags=flags, word=word):
                    lines = self.sim("fill", word, flags=flags, status=status)
                    self.assertIn("does not fit in 256 MiB: allocation 17", lines[0])
                    lines = self.sim("take", word, flags=flags, status=status)
                    self.assertRegex(lines[0], r"^verdict: none: the command failed \(exit code "
                                               rf"{status}.*\) without running out of memory$")
                    self.assertIn("peak live 48 MiB", lines[1])

    def test_interrupted(self):
        lines = self.sim("take", "interrupt", status=128 + signal.SIGINT)
        self.assertEqual(lines[0], "verdict: none: interrupted; the figures are of the part that "
                                   "ran")
        self.assertIn("peak live 48 MiB", lines[1])

    def test_recovered(self):
        for flags in (BARE, POOLED):
            with self.subTest(flags):
                for words, count in ((["fill", "give", "again"], "1 request"),
                                     (["fill", "give", "fill", "give", "again"], "2 requests")):
                    lines = self.sim(*words, flags=flags)
                    self.assertEqual(lines[0], "verdict: fits in 256 MiB, 0 B to spare")
                    self.assertNotIn("out of memory", "".join(self.brief))
                    self.assertIn(f"{count} failed with out of memory and succeeded when repeated",
                                  lines)
                lines = self.sim("fill", "give", "again", "fail", flags=flags, status=3)
                self.assertEqual(lines[0], "verdict: none: the command failed (exit code 3) "
                                           "without running out of memory")

    def test_module(self):
        """Memory may be short for something other than an allocation."""
        for flags in (BARE, POOLED):
            with self.subTest(flags):
                lines = self.sim("exhaust", "module", flags=flags, status=1)
                self.assertRegex(lines[0], r"does not fit in 256 MiB: cuModuleLoadData on device "
                                           r"0, "
                                           r"which needed 64 KiB for code or data of its own "
                                           r"\(thread fit, \d+\) failed: for it, 64 KiB were "
                                           r"missing;")
        lines = self.sim("take", "module")
        self.assertIn(" (the driver's code, local memory and graphs: up to 64 KiB)", lines[1])

    def test_chunks_of_the_program(self):
        for flags in (BARE, POOLED):
            with self.subTest(flags):
                lines = self.sim("take", "chunks", "fail", flags=flags, status=3)
                self.assertRegex(lines[0], r"allocation 15 on device 0, 16 MiB by cuMemCreate .* "
                                           r"16 MiB were missing")

    def test_chunks_that_are_given_back(self):
        for flags in (BARE, POOLED):
            lines = self.sim("passing-chunks", flags=flags)
            self.assertEqual(lines[0], "verdict: fits in 256 MiB, 240 MiB to spare")
            self.assertRegex(lines[1], r"peak live 16 MiB\b")

    def test_peak_that_the_program_reset(self):
        lines = self.sim("take-ordered", "give", "reset", "take")
        self.assertIn("peak live 80 MiB (allocated in stream order: up to 80 MiB);", lines[1])

    def test_chunks_of_the_program_on_a_full_device(self):
        lines = self.sim("module", "chunks", "fail", flags=POOLED, status=3)
        self.assertRegex(lines[0], r"fit in 256 MiB: .* 16 MiB by cuMemCreate .* \d+ \w+ were "
                                   r"missing")

    def test_host_memory(self):
        for flags in (BARE, POOLED):
            lines = self.sim("host", "fail", flags=("--host-memory", "1GiB", *flags), status=3)
            self.assertRegex(lines[0], r"cuMemAllocHost on device 0, which needed 1 TiB .* "
                                       r"1023 GiB of host memory that may be locked \(--host-")

    def test_injected(self):
        lines = self.sim("take", flags=("--fail", "cuMemAlloc_v2:1", *BARE), status=1)
        self.assertIn(" failed: not for lack of memory", lines[0])

    def test_reads(self):
        for flags in (BARE, POOLED):
            lines = self.sim("reads", flags=flags)
            self.assertEqual(
                [line for line in lines if "computed here" in line],
                ["of 2 GPU results of 4 KiB or less that the program read, 2 may not have been "
                 "computed here (often 0); if tensor sizes depend on them, memory differs on a "
                 "real GPU",
                 "the program read 1 larger GPU result (4.00 KiB in total) not computed here"])
            checked = ("0.0 % of kernel launches (0 of 1) were checked for use of freed memory; "
                       "not checked: 1 whose arguments are not known")
            self.assertIn(checked, lines)

    def test_three_lines(self):
        """With --verbose there are the details, and the object's summary too."""
        command = [COMMAND, "sim", "--memory", "96MiB"]
        env = harness.environment(False, False)
        short, long = (self.run_command([*command, *flags, "--", FIT, "take", "take-ordered"],
                                        env) for flags in ((), ("--verbose",)))
        said = short.stderr.splitlines()
        self.assertRegex(said[-3], "^spillway: verdict: does not fit in 96 MiB, but runs by sp")
        self.assertNotIn("allocations, ", short.stderr)
        self.assertRegex(long.stderr, r"\d allocations, \d frees, ")
        self.assertIn(" moves, ", long.stderr)

    def test_processes(self):
        lines = self.sim("children", "take")
        self.assertEqual(lines[0], "verdict: fits in 256 MiB, 208 MiB to spare")
        peaks = sorted(re.search(r"peak live (\d+) MiB", line).group(1) for line in lines[1:]
                       if "(pid " in line)
        self.assertEqual(peaks, ["16", "32", "48"])
        shared = [line for line in lines if "processes shared device" in line]
        self.assertEqual(len(shared), 1, lines)
        self.assertIn("2 processes shared device 0 and held up to 48 MiB of it at a time",
                      shared[0])

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_many_processes(self):
        """The one that needs most is the verdict's, and --verbose has lines for each."""
        script = f"for i in 1 2 3; do {FIT} take; done; {FIT} take-ordered; {FIT} take"
        lines = self.sim("-c", script, program="sh")
        self.assertEqual(sum("(pid " in line for line in lines), 5, lines)
        most = next(line for line in lines if "peak live 80 MiB" in line)
        pid = re.search(r"\(pid (\d+)\)", most).group(1)
        self.assertEqual(self.brief[0], f"peak: 80 MiB live (pid {pid}, device 0)"
                                        "; most: 80 MiB by fit")

    def test_processes_apart(self):
        lines = self.sim("children-apart", flags=("--devices", "2"))
        self.assertEqual(sum("(pid " in line for line in lines), 2)
        self.assertTrue(any("on device 1 (256 MiB): peak live 32 MiB" in line for line in lines))
        self.assertFalse(any("processes shared device" in line for line in lines), lines)

    def test_nothing_used(self):
        self.assertEqual(self.sim(program="true") if not harness.SANITIZED else self.sim(),
                         ["verdict: none: no process is known to have used a simulated device, nor "
                          "to have initialised CUDA"])


    def test_continued(self):
        """A program that does without what it was refused has not shown that it fits. A later
        request that was repeated does not hide it."""
        for flags, api in ((BARE, "cuMemAlloc"), (POOLED, "cudaMalloc")):
            with self.subTest(flags):
                lines = self.sim("fill", flags=flags)
                self.assertRegex(lines[0], r"^verdict: ended well in 256 MiB, but not with all "
                                           r"that it asked for: allocation 17 on device 0, 16 MiB "
                                           rf"by {api} \(thread fit, \d+\) failed with out of "
                                           r"memory, and the program continued$")
                self.assertRegex(lines[2], r"^a real h100-80g needs at least about [\d.]+ MiB: .*; "
                                           r"the refused 16 MiB are not counted")
                lines = self.sim("much", "fill", "give", "again", flags=flags)
                self.assertIn("asked for: allocation 1 on device 0, 1 GiB by ", lines[0])

    def test_required(self):
        for flags, words, memory, fit, spill in (((), ["take"], "256MiB", 0, 0),
                                                 ((), ["take", "take-ordered"], "96MiB", 1, 0),
                                                 (BARE, ["fill"], "256MiB", 1, 1),
                                                 (POOLED, ["fill", "fail"], "256MiB", 3, 3)):
            end = fit if fit > 1 else 0
            for required, status in (("fit", fit), ("spill", spill), ("end", end)):
                with self.subTest(words=words, required=required):
                    command = [COMMAND, "sim", "--require", required, "--memory", memory, *flags,
                               "--", FIT, *words]
                    result = self.run_command(command, harness.environment(False, False))
                    self.assertEqual(result.status, status, result.stderr)
                    self.assertEqual("is not met" in result.stderr, status == 1, result.stderr)

    def test_required_of_a_card(self):
        """Without --memory the device has what the card has, and the card holds some besides."""
        profile = ("--profile", "gtx1060-6g")
        lines = self.sim("fill", "give", flags=(*BARE, "--require", "fit", *profile), memory=None,
                         status=1)
        self.assertIn("ended well in 5.92 GiB", lines[0])
        lines = self.sim(*["take"] * 126, flags=(*BARE, "--require", "fit", *profile), memory=None,
                         status=1)
        self.assertRegex(lines[0], r"^verdict: fits too tightly in 5.92 GiB: 15 MiB are left, and "
                                   r"a real gtx1060-6g may hold up to 55 MiB besides \(see "
                                   r"below\)$")
        lines = self.sim("take", flags=(*BARE, "--require", "fit", *profile), memory=None)
        self.assertEqual(lines[0], "verdict: fits in 5.92 GiB, 5.84 GiB to spare")

    def test_required_of_cards_of_a_size(self):
        """With --memory the verdict is about the cards that are sold with so much, which have less
        and hold some of it besides."""
        path = self.folder / "verdict.json"
        fit = ("--require", "fit", "--json", path)
        for flags in (BARE, POOLED):
            with self.subTest(flags):
                lines = self.sim("gib=11", *["take"] * 17, flags=(*flags, *fit), memory="12GiB",
                                 status=1)
                self.assertRegex(lines[0], r"^verdict: fits too tightly in 12 GiB: 2\d\d MiB are "
                                           r"left, but cards of about that size have 11\.49 GiB "
                                           r"to 11\.90 GiB and hold 1\d\d MiB to 4\d\d MiB "
                                           r"besides, so it may fit none \(--profile NAME asks "
                                           r"about one\)$")
                self.assertRegex(lines[2], r"^a card of about 12 GiB needs about 1[\d.]+ GiB, at "
                                           r".* \(from published figures, in part of other GPUs\)$")
                found = json.loads(path.read_text())
                self.assertEqual((found["verdict"], found["cards_that_fit"]),
                                 ("fits too tightly", 0))
                self.assertIn("rtx3060-12g", found["cards"])
                self.assertNotIn("gtx1080ti-11g", found["cards"])
                lines = self.sim("gib=4", flags=(*flags, *fit), memory="12GiB")
                self.assertRegex(lines[0], r"^verdict: fits in 12 GiB, 7\.[12]\d GiB to spare on "
                                           r"each card of about that size$")
                found = json.loads(path.read_text())
                self.assertEqual(found["cards_that_fit"], len(found["cards"]))
                self.assertEqual(found["devices"][0]["spare_bytes"] >> 30, 7)
        lines = self.sim("gib=22", flags=(*BARE, *fit), memory="24GiB", status=1)
        self.assertRegex(lines[0], r"besides, so it fits [1-9] of 1\d \(--profile NAME")
        lines = self.sim("gib=22", flags=(*BARE, *fit, "--profile", "rtx4090-24g"), memory="24GiB")
        self.assertEqual(lines[0], "verdict: fits in 24 GiB, 1.55 GiB to spare")

    def test_memory_of_no_card(self):
        """Then the device alone counts, and the verdict says so."""
        for memory in ("2GiB", "500GiB"):
            lines = self.sim("take", flags=(*BARE, "--require", "fit"), memory=memory)
            self.assertRegex(lines[0], r"^verdict: fits in [\d.]+ GiB, [\d.]+ GiB to spare$")
            self.assertTrue(lines[2].endswith("; the verdict counts the program alone, as no "
                                              f"card has about {memory[:-3]} GiB"), lines)

    def test_overhead(self):
        """The device holds what a card does, so less is left; the driver's code is part of it."""
        for flags in (BARE, POOLED):
            plain = self.sim("fill", "fail", flags=flags, status=3, memory="1GiB")
            lines = self.sim("module", "fill", "fail", flags=("--overhead", "on", *flags), status=3,
                             memory="1GiB")
            self.assertIn("allocation 65 on device 0", plain[0])
            self.assertIn("allocation 30 on device 0", lines[0])
            self.assertIn("peak device memory 1 GiB ", lines[1])
            self.assertRegex(lines[2], r"^until it failed, it would have taken of a real "
                                       r"h100-80g about 1 GiB, ")

    def test_json(self):
        path = self.folder / "verdict.json"
        for words, flags, verdict in ((["take"], (), "fits"),
                                      (["take", "take-ordered"], ("--limit", "96MiB"), "spills"),
                                      (["fill"], BARE, "continued"), ([], (), "unused")):
            if not words and harness.SANITIZED:
                continue  # `true` is not built with the sanitizer
            with self.subTest(verdict):
                self.sim(*words, flags=("--json", path, *flags),
                         program=FIT if words else "true")
                found = json.loads(path.read_text())
                self.assertEqual(found["verdict"], verdict)
                self.assertEqual(found["exit_code"], 0)
                self.assertEqual(found["profile"], "h100-80g")
                if not words:
                    self.assertEqual(found["devices"], [])
                    continue
                device, = found["devices"]
                self.assertEqual(device["card_need_bytes"],
                                 device["program_bytes"] + device["card_besides_bytes"])
                self.assertEqual(device["card_need_most_bytes"] is None, verdict == "continued")
                self.assertEqual(device["ooms_for_good"], int(verdict == "continued"))
                terms = {term["term"]: term for term in device["card_terms"]}
                self.assertEqual({name: term["basis"] for name, term in terms.items()},
                                 {"program": "exact", "context": "calibrated",
                                  "nccl": "calibrated"})
                most = sum(term["most_bytes"] for term in terms.values())
                self.assertGreater(most, device["card_need_bytes"])
                self.assertIn(device["card_need_most_bytes"], (most, None))
                self.assertEqual(terms["nccl"]["bytes"], 0)
                self.assertEqual(device["spilled_bytes"] > 0, verdict == "spills")
                self.assertEqual(device["last_oom"] is None, verdict != "continued")

    def test_json_that_cannot_be_written(self):
        path = self.folder / "loop"
        path.symlink_to(path)
        lines = self.sim("take", flags=("--json", path), end=1, status=1)
        self.assertEqual(lines[-1],
                         f"spillway: sim: --json={path}: Too many levels of symbolic links")

    def limited(self, bytes_most, *flags, words=("take",)):
        """`spillway sim` with a limit on the size of files, which ends a process by a signal."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_most, bytes_most))
        return subprocess.run([COMMAND, "sim", *flags, "--", FIT, *words], capture_output=True,
                              text=True, timeout=60, preexec_fn=limit, check=False,
                              cwd=self.folder, env=harness.environment(False, False))

    @unittest.skipIf(harness.SANITIZED, "the sanitizer writes files of its own")
    def test_files_that_may_not_grow(self):
        """Nothing dies of it, and what could not be written is said."""
        for size in 0, 1 << 10, 64 << 10, 1 << 30:
            for flags in BARE, ("--spill", "auto"), ("--record", "r.rec", "--stats", "s.json",
                                        "--sim-log", "s.log", "--json", "v.json"):
                with self.subTest(size=size, flags=flags):
                    done = self.limited(size, *flags)
                    lost = flags[0] == "--record" and size == 0  # of --json
                    self.assertEqual(done.returncode, int(lost or flags == BARE), done.stderr)
                    self.assertRegex(done.stderr, r"(?s)\nspillway: verdict: none: the memory of 1 "
                                                  r"process is not known\n.*why: .*\(ulimit -f\)")
                    self.assertIn("simulated memory needs files of unlimited size", done.stderr)
                    if flags[0] == "--record" and size >= 1 << 10:
                        found = json.loads((self.folder / "v.json").read_text())
                        self.assertEqual(found["verdict"], "not recorded")
                        self.assertIn("(ulimit -f)", found["problem"])
                    if flags[0] == "--record" and size < 1 << 30:
                        self.assertIn("cannot make the recording", done.stderr)

    @unittest.skipIf(harness.SANITIZED, "LeakSanitizer does not know the process")
    def test_full_memory_file_system(self):
        """The folder of the run can be made, and has no room."""
        inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                  'mount -t tmpfs -o size=16k none /dev/shm && exec "$@"', "sh"]
        env = harness.environment(False, False)
        probe = self.run_command([*inside, "true"], env)
        if probe.status != 0:
            self.skipTest("/dev/shm cannot be replaced here: " + probe.stderr)
        result = self.run_command([*inside, COMMAND, "sim", "--require", "fit", "--", FIT, "take"],
                                  env)
        self.assertEqual(result.status, 1, result.stderr)
        why = r"/dev/shm/spillway-\w{6}/sim-\d+ cannot be written: No space left on device\n"
        self.assertRegex(result.stderr, "\nspillway sim: no verdict: " + why)
        self.assertRegex(result.stderr.replace("\nspillway:        ", " "),
                         "\nspillway: verdict: none: the memory of 1 process is not known\n"
                         "spillway:   why: " + why)
        result = self.run_command([*inside, COMMAND, "fit", "--gpus", "t4-16g", "--", FIT, "take"],
                                  env)
        self.assertRegex(result.stderr, "fit: the memory of the command is not known: " + why)
        self.assertRegex(result.stdout, r"\nt4-16g .* not known")

    @unittest.skipIf(os.geteuid() != 0, "only root can start a program as another user")
    @unittest.skipIf(harness.SANITIZED, "setpriv is not built with the sanitizer")
    def test_program_of_another_user(self):
        """It cannot write in the folder of the run, and says so."""
        other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        env = harness.environment(False, False)
        probe = self.run_command([*other, "test", "-x", FIT], env)
        if probe.status != 0:
            self.skipTest("the other user cannot run the program: " + probe.stderr)
        result = self.run_command([COMMAND, "sim", "--", *other, FIT, "take"], env)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertRegex(result.stderr, r"\nspillway sim: no verdict: /dev/shm/spillway-\w{6}/sim-"
                                        r"\d+ cannot be written: Permission denied\n")
        self.assertIn("\nspillway: verdict: none: no process is known to have used a simulated "
                      "device\nspillway:   why: no process is known to have initialised CUDA\n",
                      result.stderr)

    def test_fewer_devices_than_ranks(self):
        """The first of several ranks on a machine says what torchrun alone would not."""
        said = ("spillway sim: 2 ranks run on this machine (LOCAL_WORLD_SIZE), and 1 device is "
                "simulated; --devices 2 gives each rank its own")
        for rank, devices, count in (("0", 1, 1), ("1", 1, 0), ("0", 2, 0)):
            with self.subTest(rank=rank, devices=devices):
                command = [COMMAND, "sim", "--devices", devices, "--", FIT, "take"]
                env = harness.environment(False, False)
                result = self.run_command(command, env | {"LOCAL_WORLD_SIZE": "2",
                                                          "LOCAL_RANK": rank})
                self.assertEqual(result.status, 0, result.stderr)
                self.assertEqual(result.stderr.splitlines().count(said), count, result.stderr)


class Progress(harness.Case):
    def run_flags(self, flags):
        command = [COMMAND, "sim", *flags, "--summary", "off", "--", FIT, "take", "rest"]
        return self.run_command(command, harness.environment(False, False))

    def test_lines(self):
        """Without a terminal there are none unless they are asked for."""
        expected = {("--progress", "on"): 1, ("--progress", "off"): 0, (): 0}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            results = list(pool.map(self.run_flags, expected))
        for (flags, lines), result in zip(expected.items(), results):
            with self.subTest(flags):
                self.assertEqual(result.status, 0, result.stderr)
                found = [line for line in result.said() if re.match(r"spillway: \d+ s: ", line)]
                self.assertEqual(len(found), lines, result.stderr)
                for line in found:
                    self.assertRegex(line, r"^spillway: 1\d s: fit take \(pid \d+\) on device 0: "
                                           r"48 MiB of 79\.11 GiB in use, peak 48 MiB; \d "
                                           r"allocations?, 0 kernels$")


class Profiles(harness.Case):
    def sim(self, *flags):
        return self.run_command([COMMAND, "sim", *flags], harness.environment(False, False))

    def test_list(self):
        result = self.sim("--profile", "list")
        self.assertEqual((result.status, result.stderr), (0, ""))
        rows = result.stdout.split("\n\n")[0].splitlines()[1:]
        self.assertGreaterEqual(len(rows), 40)
        self.assertEqual(len({row.split()[0] for row in rows}), len(rows))
        self.assertIn("h100-80g", [row.split()[0] for row in rows])
        for row in rows:
            self.assertRegex(row, r"^\S+ +\d+\.\d\d GiB +\d+\.\d +\d+ +\d+ +\d+(/\d+)? "
                                  r"+\d+-\d+ +~? ?\w")

    def test_models(self):
        """A name that one GPU has, beside laptops and variants, means that GPU."""
        for name, found in (("4090", "rtx4090-24g"), ("RTX 4090", "rtx4090-24g"), ("t4", "t4-16g"),
                            ("H100", "h100-80g"), ("H100-PCIE-80G", "h100-pcie-80g")):
            result = self.sim("--profile", name, "--", FIT)
            self.assertIn(f"spillway: simulated GPU ({found}, ", result.stderr)

    def test_unknown(self):
        result = self.sim("--profile", "rtx409", "--", "true")
        self.assertEqual(result.status, 2)
        self.assertEqual(result.said(), ["spillway: sim: --profile=rtx409: not the name of a GPU "
                                         "(expected rtx4090-24g, or a name that spillway sim "
                                         "--profile list prints)"])


class Statistics(harness.Case):
    def test_last_oom(self):
        result = self.run_program(FIT, "fill-ordered", SIM_MEMORY="256MiB", SPILL="off",
                                  allow=["out of memory"])
        oom = result.device()["last_oom"]
        self.assertEqual({key: oom[key] for key in ("allocation", "bytes", "missing_bytes", "api",
                                                    "thread")},
                         {"allocation": 17, "bytes": 16 << 20, "missing_bytes": 16 << 20,
                          "api": "cudaMallocAsync", "thread": "fit"})
        result = self.run_program(FIT, "take")
        self.assertIsNone(result.device()["last_oom"])


class Compare(harness.Case):
    def compare(self, *words, flags=(), status=0, memory="256MiB"):
        command = [COMMAND, "sim", "--compare", "--summary", "off", "--memory", memory, *flags,
                   "--", FIT, *words]
        result = self.run_command(command, harness.environment(False, False))
        self.assertEqual(result.status, status, result.stderr)
        self.runs = result.stdout.count(words[0] + "\n")
        return result.said()[1:]

    def assert_smallest(self, line, size):
        self.assertRegex(line, rf"peak live 128 MiB, peak device memory \d+ MiB; smallest size "
                               rf"tried that worked: {size} MiB; (\d+ MiB was too small|"
                               r"smaller ones were not tried); a real h100-80g needs about "
                               r"[67]\d\d MiB, at most 8\d\d(\.\d+)? MiB$")

    def test_both_fit(self):
        lines = self.compare("take", "take-ordered")
        self.assertEqual(self.runs, 2)
        self.assertRegex(lines[0], r"^spillway: bare: fits in 256 MiB, \d+ MiB to spare$")
        self.assertRegex(lines[1], r"^spillway: under the pool: fits in 256 MiB, \d+ MiB to spare$")
        self.assert_smallest(lines[-2], 128)
        self.assert_smallest(lines[-1], 128)
        tried = [line for line in lines if re.search(r"  (bare|under the pool), \d+ MiB: ", line)]
        self.assertEqual(len(tried), len(lines) - 5, lines)
        self.assertRegex(tried[0], r"MiB: enough \(run 3 of at most 14, about \d+ s\)$")
        last = sum("  bare, " in line for line in tried) + 3
        self.assertRegex(tried[last - 3], rf" under .*\(run {last} of at most {last + 5}, about ")

    def test_neither_fits(self):
        """Both run again with ample memory; the exit code is that of the run under the pool."""
        lines = self.compare("take", "take-ordered", memory="96MiB", flags=POOLED, status=1)
        self.assertEqual(self.runs, 4)
        self.assertRegex(lines[0], "^spillway: bare: does not fit in 96 MiB: allocation 2 .* 32 "
                                   "MiB w")
        self.assertRegex(lines[1], "^spillway: bare, with ample memory: fits in 1 TiB, ")
        lines = [line for line in lines if "out of memory on device" not in line]
        self.assertRegex(lines[2], "^spillway: under the pool: does not fit in 96 MiB: "
                                   "allocation 2 ")
        self.assertRegex(lines[3], "^spillway: under the pool, with ample memory: fits in 1 TiB, ")
        self.assert_smallest(lines[-2], 128)
        self.assert_smallest(lines[-1], 128)

    def test_pool_needs_the_host(self):
        """The second run is without the pool, so that the peaks are the device's."""
        lines = self.compare("take", "take-ordered", flags=("--limit", "96MiB"))
        self.assertEqual(self.runs, 3)
        self.assertRegex(lines[2], r"^spillway: under the pool: does not fit in 96 MiB, but runs "
                                   r"by "
                                   r"spilling: up to \d+ MiB on the host$")
        self.assertRegex(lines[3], "^spillway: under the pool, with ample memory: fits in 1 TiB, ")
        self.assert_smallest(lines[-2], 128)

    def test_pool_alone_fails(self):
        lines = self.compare("take", "take-ordered", flags=(*POOLED, "--limit", "96MiB"),
                             status=1)
        self.assertEqual(self.runs, 3)
        self.assertRegex(lines[0], "^spillway: bare: fits in 256 MiB, ")
        self.assertTrue(any(line.startswith("spillway: under the pool: does not fit")
                            for line in lines), lines)
        self.assertTrue(any(line.startswith("spillway: under the pool, with ample memory: fits in ")
                            for line in lines), lines)

    def test_failure_of_another_kind(self):
        lines = self.compare("take", "fail", status=3)
        self.assertEqual(self.runs, 2)
        self.assertEqual(len(lines), 2, lines)
        for line in lines:
            self.assertIn("none: the command failed (exit code 3)", line)

    def test_interrupted(self):
        """The user wants the command to end, not the next run to start."""
        self.compare("take", "interrupt", status=128 + signal.SIGINT)
        self.assertEqual(self.runs, 1)

    def run_script(self, script, memory, status):
        command = [COMMAND, "sim", "--compare", "--summary", "off", "--memory", memory, "--spill",
                   "off", "--", "sh", "-c", script]
        result = self.run_command(command, harness.environment(False, False))
        self.assertEqual(result.status, status, result.stderr)
        return [line for line in result.said() if line.startswith("spillway: ")]

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_interrupted_launcher(self):
        """A command that ends in its own way after Ctrl-C, as torchrun does."""
        script = f"trap 'exit 1' INT; {FIT} take; kill -INT $PPID; sleep 60 > /dev/null 2>&1 & wait"
        for flags in (BARE, ("--compare",)):
            with self.subTest(flags):
                command = [COMMAND, "sim", *flags, "--", "sh", "-c", script]
                begin = time.monotonic()
                result = self.run_command(command, harness.environment(False, False))
                self.assertLess(time.monotonic() - begin, 30)
                self.assertEqual(result.status, 128 + signal.SIGINT, result.stderr)
                self.assertIn("none: interrupted; the figures are of the part that ran\n",
                              result.stderr)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_interrupted_in_vain(self):
        """A command that does not end is killed, with its children in sessions of their own."""
        pid = self.folder / "pid"
        script = (f"trap '' INT; {FIT} take; setsid sh -c 'echo $$ > {pid}; exec sleep 90' & "
                  f"while [ ! -s {pid} ]; do sleep 0.1; done; kill -INT $PPID; wait")
        command = [COMMAND, "sim", "--no-pool", "--", "sh", "-c", script]
        begin = time.monotonic()
        result = self.run_command(command, harness.environment(False, False))
        self.assertLess(time.monotonic() - begin, 60)
        self.assertEqual(result.status, 128 + signal.SIGINT, result.stderr)
        self.assertIn("spillway: killed: it did not end within 10 s of Ctrl-C, and is idle\n",
                      result.stderr)
        self.assertIn("none: interrupted; ", result.stderr)
        process = pathlib.Path(f"/proc/{pid.read_text().strip()}/cmdline")
        self.assertFalse(process.exists() and process.read_bytes()) # a zombie's is empty

    def run_busy(self, script):
        """A command that takes Ctrl-C and works on; also what all said. The file `said` tells it
        that it was found late."""
        script, said = f"trap : INT; {FIT} take; kill -INT $PPID; {script}", []
        with subprocess.Popen([COMMAND, "sim", "--no-pool", "--", "sh", "-c", script],
                              env=harness.environment(False, False), stderr=subprocess.PIPE,
                              text=True, cwd=self.folder) as child:
            for line in child.stderr:
                said.append(line)
                if "Ctrl-C again kills it" in line:
                    (self.folder / "said").write_text("yes")
        self.assertEqual(child.returncode, 128 + signal.SIGINT, said)
        return "".join(said)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_interrupted_and_busy(self):
        """A command that works is not killed."""
        said = self.run_busy("until [ -s said ]; do :; done; echo ended >&2; exit 5")
        self.assertIn("spillway: not ended yet, 10 s after Ctrl-C, but still busy: ", said)
        self.assertIn("ended\n", said)
        self.assertNotIn("killed", said)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_interrupted_twice(self):
        said = self.run_busy("sleep 3; kill -INT $PPID; while :; do :; done")
        self.assertIn("spillway: killed by the second Ctrl-C\n", said)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_interrupted_search(self):
        """Ctrl-C during a run of the search: no more runs, what is known, and exit code 130."""
        runs = self.folder / "runs"
        lines = self.run_script(f"echo >> {runs}; {FIT} take; "
                                f"[ $(wc -l < {runs}) -lt 4 ] || kill -INT $PPID", "256MiB",
                                128 + signal.SIGINT)
        self.assertEqual(len(runs.read_text()), 4)
        self.assertRegex(lines[-2], "^spillway: under the pool: peak live 48 MiB")
        self.assertEqual(lines[-1], "spillway: interrupted: only the results above are known")

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_failure_that_the_program_hides(self):
        """A size is too small also if the program exits with 0 after a call was refused."""
        lines = self.run_script(f"{FIT} take take-ordered || true", "96MiB", 0)
        self.assertRegex(lines[1], "^spillway: bare: ended well in 96 MiB, but not with all ")
        self.assert_smallest(lines[-2], 128)

    def test_processes(self):
        lines = self.compare("children", "take")
        shared = [line for line in lines if "2 processes shared device 0" in line]
        self.assertEqual(len(shared), 2, lines)

    def test_bad_usage(self):
        result = self.run_command([COMMAND, "sim", "--compare", "--no-pool", "--", FIT],
                                  harness.environment(False, False))
        self.assertEqual(result.status, 2)
        self.assertIn("--compare", result.stderr)
        result = self.run_command([COMMAND, "sim", "--compare", "--", "no-such-command-here"],
                                  harness.environment(False, False))
        self.assertEqual(result.status, 127)
        self.assertEqual(len(result.said()), 2, result.stderr)

    def test_statistics_are_of_the_run_under_the_pool(self):
        path = self.folder / "stats.json"
        self.compare("take", "take-ordered", flags=("--stats", path))
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["stats.json"])
        self.assertIn('"limit_bytes": 268435456', path.read_text())


if __name__ == "__main__":
    harness.main()
