#!/usr/bin/env python3
"""Native call sites: a program's memory is charged to its functions, and the command shows it."""
import json
import pathlib
import sys
import unittest

import harness
import recording
from harness import COMMAND, MIB, PROGRAMS

PROGRAM = PROGRAMS / "sites"
# Allocates in code objects whose names no editor would write.
ODD_NAMES = r"""
import ctypes, threading
driver = ctypes.CDLL("libcudart.so.13")
def take(bytes):
    address = ctypes.c_void_p()
    assert driver.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(bytes)) == 0
def under(file, function):
    take.__code__ = take.__code__.replace(co_filename=file, co_name=function)
    take(3 << 20)
under("/etc/\x1b]0;owned\x07.py", "\0nul")
under("x" * 5000 + ".py", "<lambda>")
under("\ud800.py", "")
under("a\nb;c\"d.py", "\u2028\u202e")
ctypes.CDLL(None).prctl(15, b"\xff\xfe", 0, 0, 0)
under("thread.py", "f")
"""


class Sites(harness.Case):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "stats"

    def run_sites(self, *words, status=0, **options):
        """The statistics of the program."""
        command = [COMMAND, "sim", "--memory", "1GiB", "--stats", self.path, "--", PROGRAM, *words]
        env = harness.environment(False, False, SUMMARY="off", **options)
        result = self.run_command(command, env)
        self.assertEqual(result.status, status, result.stderr)
        return json.loads(self.path.read_text())

    def sites(self, *arguments, status=0, path=None):
        result = self.run_command([COMMAND, "sites", path or self.path, *arguments],
                                  harness.environment(False, False))
        self.assertEqual(result.status, status, result.stderr)
        return result

    def assert_adds_up(self, stats):
        device = stats["devices"][0]
        for key, counter in {"live_bytes": "live_bytes",
                             "device_peak_bytes": "live_peak_bytes"}.items():
            self.assertEqual(sum(site[key] for site in stats["sites"]), device[counter])

    def by_function(self, key="at_peak"):
        """Bytes by the innermost function of each row that the command shows, and its thread."""
        shown = json.loads(self.sites("--json").stdout)["devices"][0][key]
        held = {}
        for row in shown:
            # The innermost frame is the first.
            parts = [entry.strip().split(":", 1) for entry in row["site"].split(";")]
            entries = dict(reversed(parts))
            # The compiler adds to the names of functions that it changed.
            function = entries["native"].split(":", 1)[1].split(".")[0]
            place = function, entries["thread"], entries["api"]
            held[place] = held.get(place, 0) + row["bytes"]
        return held

    @unittest.skipIf(harness.SANITIZED, "Python is not built with the sanitizer")
    def test_odd_names(self):
        """They are names like others, from the first stack on, and the same to statistics and
        recording."""
        program = self.folder / "odd.py"
        program.write_text(ODD_NAMES)
        recording = self.folder / "odd.spw"
        command = [COMMAND, "sim", "--memory", "1GiB", "--stats", self.path, "--record", recording,
                   "--sites", "python", "--", sys.executable, program]
        result = self.run_command(command, harness.environment(False, False, SUMMARY="off"))
        self.assertEqual(result.status, 0, result.stderr)
        self.assertNotIn("cannot be read", result.stderr)
        sites = json.loads(self.path.read_text())["sites"]
        names = [(site["python"][0]["file"], site["python"][0]["function"]) for site in sites]
        self.assertIn(("/etc/\x1b]0;owned\x07.py", "\ufffdnul"), names)
        self.assertIn(("\ufffd.py", ""), names)
        self.assertEqual(len(names), 5)
        result = self.run_command([COMMAND, "diff", "--json", self.path, recording],
                                  harness.environment(False, False))
        self.assertEqual(result.status, 0, result.stderr)
        pairs = json.loads(result.stdout)["devices"][0]["sites"]
        self.assertEqual([pair for pair in pairs if not pair["before"] or not pair["after"]], [])

    def test_functions_hold_what_they_took(self):
        stats = self.run_sites("take", "peak", "map", "thread", "take")
        self.assert_adds_up(stats)
        kept = {("take_exported", "main", "cuMemAlloc"): 3 * MIB,
                ("take_hidden", "main", "cuMemAlloc"): 5 * MIB}
        self.assertEqual(self.by_function("at_peak"),
                         {**kept, ("take_in_order", "main", "cuMemAllocAsync"): 64 * MIB})
        self.assertEqual(self.by_function("at_exit"),
                         {**{place: 2 * held for place, held in kept.items()},
                          ("map_own", "main", "cuMemCreate"): 16 * MIB,
                          ("take_exported", "pt_autograd_7", "cuMemAlloc"): 4 * MIB})

    def test_a_thread_gets_another_name(self):
        """The first few allocations after that may still have the old one."""
        self.assert_adds_up(self.run_sites("rename"))
        held = self.by_function()
        early, late = (held[("take_exported", name, "cuMemAlloc")] // (MIB // 4)
                       for name in ("early", "late"))
        self.assertEqual(early + late, 200)
        self.assertTrue(100 <= early <= 132, early)

    def test_page_locked_memory_is_apart(self):
        for mode in "auto", "observe":
            stats = self.run_sites("take", "lock", MODE=mode)
            self.assert_adds_up(stats)
            device = stats["devices"][0]
            self.assertEqual((device["pinned_bytes"], device["pinned_peak_bytes"],
                              device["pinned_allocs"]), (8 * MIB, 16 * MIB, 3))
            host = ("lock_host", "main", "cuMemHostAlloc")
            own = ("lock_own", "main", "cuMemHostRegister")
            self.assertEqual(self.by_function("pinned_at_peak"), {host: 14 * MIB, own: 2 * MIB})
            self.assertEqual(self.by_function("pinned_at_exit"), {host: 6 * MIB, own: 2 * MIB})
            kept = {site["allocs"] - site["frees"] for site in stats["pinned_sites"]}
            self.assertEqual(kept, {1})
            shown = self.sites().stdout
            self.assertIn("device 0, page-locked host memory at its peak: 16 MiB", shown)
            self.assertRegex(shown, r"(?m)^ +14 MiB +87\.5 % +2  lock_host in sites$")
        self.run_sites("take")
        self.assertNotIn("page-locked", self.sites().stdout)

    def test_observed_memory_is_charged_too(self):
        stats = self.run_sites("take", "map", "peak", MODE="observe")
        self.assert_adds_up(stats)
        self.assertEqual(self.by_function("at_exit"),
                         {("take_exported", "main", "cuMemAlloc"): 3 * MIB,
                          ("take_hidden", "main", "cuMemAlloc"): 5 * MIB,
                          ("map_own", "main", "cuMemCreate"): 16 * MIB})

    def test_own_frames_are_left_out(self):
        stats = self.run_sites("take")
        for site in stats["sites"]:
            libraries = {pathlib.Path(frame["library"]).name for frame in site["native"]}
            self.assertNotIn("libspillway.so", libraries)
            self.assertEqual(pathlib.Path(site["native"][0]["library"]).name, "sites")
            self.assertEqual(site["python"], [])
            self.assertIsNone(site["node"])
        paths = {module["path"]: module["build_id"] for module in stats["modules"]}
        self.assertRegex(paths[str(PROGRAM)], r"^[0-9a-f]{40}$")

    def assert_same(self, one, other):
        for stats in one, other:
            stats["sites"].sort(key=lambda site: site["id"])
            stats["pinned_sites"].sort(key=lambda site: site["id"])
            stats["modules"].sort(key=lambda module: module["path"])
        self.assertEqual(one["sites"], other["sites"])
        self.assertEqual(one["pinned_sites"], other["pinned_sites"])
        self.assertEqual(one["modules"], other["modules"])

    def test_a_program_that_died(self):
        """The launcher reports what the program would have reported."""
        words = ("take", "peak", "map", "lock", "thread")
        own = self.run_sites(*words)
        left = self.run_sites(*words, "die", status=137)
        self.assert_adds_up(left)
        self.assert_same(own, left)

    def test_forks_leave_the_sites_alone(self):
        words = ("take", "peak")
        own = self.run_sites(*words)
        for ending, status in ((), 0), (("die",), 137):
            self.assert_same(own, self.run_sites("fork", *words, "fork", *ending, status=status))

    def test_without_the_launcher(self):
        """Without a folder from the launcher, memory and file are the program's own."""
        result = self.run_program(PROGRAM, "take", "fork", "peak")
        self.assert_adds_up(result.stats)

    def test_off(self):
        stats = self.run_sites("take", SITES="off")
        self.assertNotIn("sites", stats)
        self.assertIn("it has no call sites", self.sites(status=1).stderr)

    def test_table(self):
        self.run_sites("take", "peak")
        lines = self.sites("--top", "2").stdout.splitlines()
        self.assertIn("device 0 at the peak: 72 MiB", lines)
        row = next(line for line in lines if "take_in_order" in line)
        self.assertRegex(row, r"^ +64 MiB +88\.8 % +8  take_in_order in sites$")
        self.assertIn("in 1 more (--top 3 shows them)", "\n".join(lines))
        self.assertIn("; api:cuMemAllocAsync", self.sites("--text").stdout)
        frames = self.sites("--native").stdout
        self.assertRegex(frames, r"(?m)^ {39}take_exported in .*/sites$")
        self.assertRegex(frames, r"(?m)^ {39}by cuMemAllocAsync on thread \S+$")
        self.assertNotIn("native:", frames)
        self.assertNotRegex(self.sites("--full").stdout, r"(?m)^ {39}take_exported")

    def test_bad_usage(self):
        for arguments, status, said in (
                ((self.path,), 2, "unexpected argument: sites shows one file (spillway diff "),
                (("--top",), 2, "--top: a value is missing"),
                (("--top", "x"), 2, "--top=x: not a number"),
                (("--jsn",), 2, "--jsn is not an option (did you mean --json?)"),
                (("--ful",), 2, "--ful is not an option (did you mean --full?)"),
                (("--json=1",), 2, "--json: no value is expected"),
                (("--", "--json"), 2, "--json: unexpected argument"),
                ((), 1, "No such file")):
            with self.subTest(arguments):
                result = self.sites(*arguments, status=status)
                self.assertIn("spillway: sites: ", result.stderr)
                self.assertIn(said, result.stderr)
        for text, wrong in (
                ("", "it is not valid JSON, or it is truncated"),
                ('{"schema": 1, "dev', "truncated"),
                ("[]", "it is not an object"), ("{}", '"schema" is missing'),
                ('{"schema": 2}', '"schema" is not 1'),
                ('{"schema": 1, "devices": 7}', '"devices" is not a list'),
                ('{"schema": 1, "devices": [], "sites": 3}', '"sites" is not a list')):
            with self.subTest(text):
                self.path.write_text(text)
                self.assertRegex(self.sites(status=1).stderr,
                                 f"^spillway: sites: .*: not a statistics file: .*{wrong}.*\n$")
        self.path.write_bytes(recording.sample().data())
        self.assertIn(f"{self.path}: this is a recording, and no statistics file (spillway report ",
                      self.sites(status=1).stderr)
        self.assertIn("usage: spillway sites", self.sites(path="--help").stdout)


if __name__ == "__main__":
    harness.main()
