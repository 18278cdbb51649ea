#!/usr/bin/env python3
"""The recording that the preloaded object writes, read by a reader of the tests' own."""
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

import harness
from harness import MIB
from recording import Recording

PROGRAM = harness.PROGRAMS / "recorded"
KILLS = 20


def round_up(event):
    return (event["bytes"] + 511) // 512 * 512


class Replay:
    """What the events add up to: live blocks, their bytes, the peak, and what cannot be."""

    def __init__(self, recording):
        self.live, self.bytes, self.peak, self.wrong, self.time = {}, 0, 0, [], 0
        self.events = list(recording.events())
        self.sites, self.threads, self.names = {}, {}, {}
        self.streams, self.crossed = {}, 0 # frees on another stream than the allocation's
        self.committed, self.ahead = 0, 0  # the most bytes that lived beyond the committed ones
        for event in self.events:
            self.take(event)

    def count(self, kind):
        return sum(event["kind"] == kind for event in self.events)

    def take(self, event):
        key = event["device"], event.get("address")
        if event["time"] < self.time:
            self.wrong.append(("back in time", event))
        self.time = event["time"]
        if event["kind"] == "gauges":
            self.committed = event["gauges"]["committed_bytes"]
        else:
            self.ahead = max(self.ahead, self.bytes - self.committed)
        if event["kind"] == "alloc":
            if key in self.live:
                self.wrong.append(("allocated twice", event))
            if event["site"] not in self.sites and event["site"] != 0:
                self.wrong.append(("unknown site", event))
            self.live[key] = round_up(event) if event["source"] == "pool" or event["charged"] else 0
            self.streams[key] = event["stream"]
            self.bytes += self.live[key]
            self.peak = max(self.peak, self.bytes)
        elif event["kind"] == "free":
            if key not in self.live:
                self.wrong.append(("free of what is not live", event))
            self.bytes -= self.live.pop(key, 0)
            self.crossed += event["stream"] != self.streams.get(key)
        elif event["kind"] == "site":
            self.sites[event["number"]] = event
        elif event["kind"] == "name" and event["of"] == "thread":
            self.threads[event["number"]] = event["text"]
        elif event["kind"] == "name":
            self.names[event["of"], event["number"]] = event["text"]


class Record(harness.Case):
    def record(self, *arguments, path=None, **options):
        """Runs the program with a recording; returns its statistics and the recording."""
        path = path or self.folder / "recording"
        result = self.run_program(PROGRAM, *arguments, RECORD=path, **options)
        return result, Recording(pathlib.Path(path))

    def sources(self, program, *arguments, **options):
        """How many allocations of each source a program made, and how many frees of each."""
        path = self.folder / f"recording-{next(self.numbers)}"
        self.run_program(harness.PROGRAMS / program, *arguments, RECORD=path, **options)
        made, freed, of = collections.Counter(), collections.Counter(), {}
        for event in Recording(path).events():
            if event["kind"] == "alloc":
                of[event["address"]] = event["source"], event["charged"]
                made[of[event["address"]]] += 1
            elif event["kind"] == "free":
                freed[of.pop(event["address"])] += 1
        return made, freed

    def test_memory_that_is_not_the_pools(self):
        """The program's own physical memory, page-locked memory, and what the driver allocates."""
        created, pinned, passed = ("created", True), ("pinned", False), ("passed", True)
        self.assertEqual(self.sources("own_memory"), ({created: 4, pinned: 3},
                                                      {created: 4, pinned: 2}))
        self.assertEqual(self.sources("vmm"), ({created: 1, pinned: 1}, {created: 1}))
        self.assertEqual(self.sources("refused", "free", MODE="observe", allow=["mode observe"]),
                         ({passed: 3}, {passed: 3}))

    def test_memory_on_the_host(self):
        """The bytes that rules place there: whole blocks, and whole granules of others."""
        policy, path = self.folder / "policy.json", self.folder / "recording"
        rules = [{"name": "part", "match": {"size": {"min": "4MiB"}},
                  "action": {"host_share": "50%"}},
                 {"name": "small", "match": {}, "action": {"placement": "host"}}]
        policy.write_text(json.dumps({"version": 1, "rules": rules}))
        result = self.run_program(harness.PROGRAMS / "sites", "take", "peak", RECORD=path,
                                  POLICY=policy, SIM_MEMORY="256MiB", allow=["rule "])
        allocs = [event for event in Recording(path).events() if event["kind"] == "alloc"]
        # Of the three granules of 5 MiB one, the last, which is half full.
        self.assertEqual({(event["bytes"] // MIB, event["host_bytes"] // MIB) for event in allocs},
                         {(3, 3), (5, 1), (8, 4)})
        self.assertEqual(sum(event["host_bytes"] for event in allocs),
                         sum(rule["host_peak_bytes"] for rule in result.stats["rules"]))

    def agree(self, result, recording):
        replay, device = Replay(recording), result.device()
        self.assertEqual((replay.wrong, replay.crossed, replay.ahead), ([], 0, 0))
        self.assertNotIn(0, replay.streams.values())
        self.assertEqual(recording.complete, 1)
        self.assertEqual(sum(recording.lost.values()), 0)
        self.assertEqual(replay.count("alloc"), device["allocs"])
        self.assertEqual(replay.count("free"), device["frees"])
        self.assertEqual(replay.bytes, device["live_bytes"])
        return replay, device

    def test_agrees_with_the_statistics(self):
        began = time.time_ns()
        result, recording = self.record(5000)
        self.assertIn(recording.began_ns, range(began, time.time_ns()))
        replay, device = self.agree(result, recording)
        self.assertEqual(replay.peak, device["live_peak_bytes"])
        self.assertEqual(recording.written, len(replay.events))
        self.assertEqual([event["number"] for event in replay.events if event["kind"] == "step"],
                         list(range(1, 51)))
        gauges = [event["gauges"] for event in replay.events if event["kind"] == "gauges"][-1]
        self.assertGreater(gauges.pop("driver_calls"), 0)
        self.assertGreater(gauges.pop("driver_ns"), 0)
        self.assertEqual({name: device[name] for name in gauges}, gauges)
        self.assertEqual(gauges["committed_bytes"], device["committed_bytes"])
        self.assertEqual(replay.names["about", 0], "recorded 5000")
        self.assertEqual(replay.threads, {0: "main"})

    def test_sites_have_frames_in_modules(self):
        result, recording = self.record(200)
        replay, _ = self.agree(result, recording)
        modules = [event for event in replay.events if event["kind"] == "module"]
        own = [module for module in modules if module["path"].endswith("/recorded")]
        self.assertEqual(len(own), 1)
        sites = [site for site in replay.sites.values() if site["api"] == "cudaMallocAsync"]
        self.assertNotEqual(sites, [])
        for site in sites:
            self.assertTrue(any(own[0]["begin"] <= frame < own[0]["end"]
                                for frame in site["native"]), site)

    def test_threads(self):
        result, recording = self.record(2000, 4)
        replay, _ = self.agree(result, recording)
        self.assertEqual(len(replay.threads), 4)
        self.assertEqual(len({event["stream"] for event in replay.events
                              if event["kind"] == "alloc"}), 4)

    def test_a_thread_gets_another_name(self):
        """It is another thread then, soon after."""
        path = self.folder / "recording"
        self.run_program(harness.PROGRAMS / "sites", "rename", RECORD=path)
        replay = Replay(Recording(path))
        names = collections.Counter(replay.threads[event["thread"]] for event in replay.events
                                    if event["kind"] == "alloc")
        self.assertEqual(set(names), {"early", "late"})
        self.assertEqual(sum(names.values()), 200)
        self.assertTrue(100 <= names["early"] <= 132, names)

    def test_size_of_an_event(self):
        _, recording = self.record(20000)
        bytes_used = sum(len(body) for *_, body in recording.blocks)
        self.assertLess(bytes_used / recording.written, 12)

    def test_full(self):
        """What does not fit is counted."""
        result, recording = self.record(150000, RECORD_SIZE="1MiB")
        replay, device = Replay(recording), result.device()
        self.assertEqual((recording.loss, replay.wrong), (1, []))
        self.assertLessEqual((self.folder / "recording").stat().st_size, recording.limit)
        self.assertGreater(recording.lost["events"], 1000)
        self.assertEqual(replay.count("alloc") + recording.lost["allocs"], device["allocs"])
        self.assertEqual(replay.count("free") + recording.lost["frees"], device["frees"])

    def test_no_room_in_the_file_system(self):
        """The program stands in for the C library, and refuses the file's second MiB."""
        result, recording = self.record(150000, 1, "full")
        replay = Replay(recording)
        self.assertEqual((recording.loss, replay.wrong), (2, []))
        self.assertEqual(replay.count("alloc") + recording.lost["allocs"],
                         result.device()["allocs"])

    def test_no_room_at_all(self):
        self.run_program(PROGRAM, 100, 1, "fuller", RECORD=self.folder / "recording",
                         allow=["cannot make the recording .*: the file system has no room"])
        self.assertFalse((self.folder / "recording").exists())

    def test_file_that_needs_a_name(self):
        """The program stands in for a system where a file without a name cannot get one."""
        for _ in range(2):  # the second replaces the first
            time.sleep(0.05)
            result, recording = self.record(1000, 1, "named")
            self.agree(result, recording)
        self.assertEqual([path.name for path in self.folder.glob("recording*")], ["recording"])

    def test_marks_without_end(self):
        """They leave room for the rest, and what is lost of them is counted."""
        result, recording = self.record(1000, 1, "marks", RECORD_SIZE="1MiB")
        replay, _ = self.agree(result, recording)
        marks = [event for event in replay.events
                 if event["kind"] == "name" and event["of"] == "mark"]
        begins = collections.Counter(event["text"] for event in marks if event["number"] == 1)
        ends = collections.Counter(event["text"] for event in marks if event["number"] == 0)
        self.assertEqual(begins, ends)
        self.assertGreater(begins["inner"], 100)
        self.assertEqual(len(marks) + replay.count("step") + recording.lost_marks,
                         5 * 5000 + 1 + 10)
        self.assertLess(sum(len(event["text"]) + 6 for event in marks), recording.limit // 8)

    def test_killed(self):
        """Whenever the program dies, what it said it had done is in the file, and the file is a
        recording as soon as it is there."""
        draw = random.Random(19)
        for number in range(KILLS):
            path = self.folder / f"killed-{number}"
            env = harness.environment(RECORD=path, SUMMARY="off")
            with subprocess.Popen([PROGRAM, "0", "2"], env=env, stdout=subprocess.PIPE) as child:
                while not path.exists() and child.poll() is None:
                    pass
                time.sleep(draw.uniform(0, 0.3) if number % 2 else 0)
                child.send_signal(signal.SIGKILL)
                said = [line for line in child.stdout.read().split(b"\n")[:-1] if line]
            self.assertEqual(child.returncode, -signal.SIGKILL)
            with self.subTest(number=number):
                recording = Recording(path)
                replay = Replay(recording)
                self.assertEqual((replay.wrong, recording.complete), ([], 0))
                done = sum(event["kind"] in ("alloc", "free") and event["thread"] in
                           {number for number, name in replay.threads.items() if name == "main"}
                           for event in replay.events)
                self.assertGreaterEqual(done, int(said[-1]) if said else 0)

    def test_memory_that_the_driver_does_not_create(self):
        """What was never allocated is not freed."""
        path = self.folder / "recording"
        result = self.run_program(harness.PROGRAMS / "fit", "chunks", RECORD=path, SPILL="off",
                                  SIM_MEMORY="256MiB", SIM_FAIL="cuMemCreate:6+:2",
                                  allow=("out of memory on device 0", "^spillway:   "))
        replay = Replay(Recording(path))
        self.assertEqual((replay.wrong, replay.count("alloc"), replay.count("free")), ([], 3, 0))
        self.assertEqual(replay.bytes, result.device()["live_bytes"])

    def test_uses(self):
        """`periodic` adds to each of its 24 blocks twice in a step, each time with a kernel."""
        path = self.folder / "recording"
        for uses, expected in ("on", [6] * 24), ("off", [0] * 24):
            self.run_program(harness.ROOT / "tests/spill/periodic", 3, "named", RECORD=path,
                             RECORD_USES=uses, SPILL="off", SIM_MEMORY="256MiB")
            replay = Replay(Recording(path))
            self.assertEqual(replay.wrong, [])
            counts = collections.Counter(
                address for event in replay.events if event["kind"] == "use" and event["kernel"]
                for address in event["addresses"])
            blocks = [event["address"] for event in replay.events
                      if event["kind"] == "alloc" and event["bytes"] > 3 << 20]
            self.assertEqual([counts[block] for block in blocks], expected)

    def test_moves(self):
        """Both ways, each in its own column, and the ranges that moved."""
        path = self.folder / "recording"
        result = self.run_program(harness.ROOT / "tests/spill/periodic", 6, "named", RECORD=path,
                                  SIM_MEMORY="64MiB", allow=["device 0 is full"])
        events, device = list(Recording(path).events()), result.device()
        moves = [event for event in events if event["kind"] == "move"]
        ranges = collections.Counter()
        for event in events:
            if event["kind"] == "range":
                ranges[event["to_host"]] += event["bytes"]
        to_host = device["spilled_bytes"] - device["placed_bytes"]
        to_device = device["promoted_bytes"]
        self.assertNotIn(0, (to_device, to_host, to_device - to_host))
        self.assertEqual(sum(move["to_host"] for move in moves), to_host)
        self.assertEqual(sum(move["to_device"] for move in moves), to_device)
        self.assertEqual(ranges, {True: to_host, False: to_device})

    @unittest.skipIf(harness.SANITIZED, "the program takes a function from the sanitizer")
    def test_uses_of_a_call_inside_another(self):
        """They are a part of the outer call's, with and without spilling."""
        path = self.folder / "recording"
        for spill in "auto", "off":
            self.run_program(harness.PROGRAMS / "nested", RECORD=path, RECORD_USES="on",
                             SPILL=spill)
            replay = Replay(Recording(path))
            inner, outer = (event["address"] for event in replay.events if event["kind"] == "alloc")
            self.assertEqual([event["addresses"] for event in replay.events
                              if event["kind"] == "use"], [[outer], [outer], [inner]])
            time.sleep(0.05)

    def test_child_has_a_file_of_its_own(self):
        result, first = self.record(1000, 1, "early", path=self.folder / "r")
        self.assertIn("child: 0", result.stdout)
        (path,) = self.folder.glob("r.*")
        for recording in (first, Recording(path)):
            replay = Replay(recording)
            self.assertEqual((replay.wrong, recording.complete), ([], 1))
            self.assertEqual(replay.count("alloc"), 1000)

    def test_child_leaves_the_parents_file_alone(self):
        result, recording = self.record(1000, 1, "late", path=self.folder / "r")
        self.assertIn("child: 0", result.stdout)
        replay, _ = self.agree(result, recording)
        self.assertEqual(replay.count("alloc"), 2000)
        self.assertEqual(list(self.folder.glob("r.*")), [])


class Files(harness.Case):
    def record(self, path, **options):
        return self.run_program(PROGRAM, 100, RECORD=path, **options)

    def test_descriptor_that_the_program_closed(self):
        """What it opens under the number is its own."""
        path = self.folder / "r"
        for rounds in 100, 200000:
            with self.subTest(rounds):
                self.run_program(PROGRAM, rounds, 1, "closed", RECORD=path)
                self.assertEqual((self.folder / "r.mine").read_text(), "mine")
                (self.folder / "r.mine").unlink()
                path.unlink()

    def test_name_has_directives(self):
        self.record("r-%p-%r-%h", allow=())
        host = os.uname().nodename
        (found,) = self.folder.glob("r-*")
        self.assertEqual(found.name, f"r-{Recording(found).pid}-0-{host}")

    # Initialises CUDA, counts the devices and starts the ranks, as torchrun does.
    LAUNCHER = """
import ctypes, os, subprocess, sys
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) == 0
ranks = [subprocess.Popen(sys.argv[2:], env={**os.environ, sys.argv[1]: str(rank)})
         for rank in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
"""

    def start_ranks(self, variable, **more):
        """The ranks in the files that a job leaves, by name."""
        for old in self.folder.glob("d-*"):
            old.unlink()
        env = {**harness.environment(RECORD="d-%r.rec", STATS="d-%r.json", SUMMARY="off"), **more}
        done = self.run_command([sys.executable, "-c", self.LAUNCHER, variable, PROGRAM, 100], env)
        self.assertEqual((done.status, done.said()), (0, []), done.stderr)
        found = {path.name: Recording(path).rank for path in self.folder.glob("d-*.rec*")}
        return found | {path.name: json.loads(path.read_text())["rank"]
                        for path in self.folder.glob("d-*.json*")}

    @unittest.skipIf(harness.SANITIZED, "the interpreter is not built with the sanitizer")
    def test_the_launcher_of_a_job_is_no_rank(self):
        """It allocates nothing, and leaves rank 0 its name; also where Slurm gives it a rank."""
        wanted = {"d-0.rec": 0, "d-1.rec": 1, "d-0.json": 0, "d-1.json": 1}
        for variable in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
            with self.subTest(variable):
                self.assertEqual(self.start_ranks(variable), wanted)
        self.assertEqual(self.start_ranks("RANK", SLURM_PROCID="1"), wanted)

    @unittest.skipIf(harness.SANITIZED, "the interpreter is not built with the sanitizer")
    def test_a_process_without_memory_replaces_no_recording(self):
        self.record(self.folder / "r")
        first = Recording(self.folder / "r").pid
        time.sleep(0.05)
        self.run_program(sys.executable, "-c", self.LAUNCHER, "RANK", "true",
                         RECORD=self.folder / "r")
        self.assertEqual(Recording(self.folder / "r").pid, first)
        self.assertEqual(list(self.folder.glob("r.*")), [])

    def test_recording_of_an_earlier_run_is_replaced(self):
        path = self.folder / "r"
        self.record(path)
        first = Recording(path).pid
        time.sleep(0.05)
        self.record(path)
        self.assertNotEqual(Recording(path).pid, first)
        self.assertEqual(list(self.folder.glob("r.*")), [])

    def test_other_files_are_left_alone(self):
        path = self.folder / "r"
        for make in (lambda: path.write_text("this is mine"), lambda: path.mkdir(),
                     lambda: os.mkfifo(path), lambda: path.symlink_to(self.folder / "victim")):
            make()
            os.utime(path, (0, 0), follow_symlinks=False) # long before
            with self.subTest(mode=oct(path.lstat().st_mode)):
                self.record(path)
                (other,) = self.folder.glob("r.*")
                self.assertTrue(other.name == f"r.{Recording(other).pid}")
                other.unlink()
            self.assertFalse((self.folder / "victim").exists())
            if path.is_file():
                self.assertEqual(path.read_text(), "this is mine")
            path.rmdir() if path.is_dir() else path.unlink()

    def test_recording_that_is_being_written_is_left_alone(self):
        path = self.folder / "r"
        env = harness.environment(RECORD=path, SUMMARY="off")
        with subprocess.Popen([PROGRAM, "0"], env=env, stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            child.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, child.pid, os.WSTOPPED)
            os.utime(path, (0, 0)) # it writes nothing for a long time
            self.record(path)
            child.kill()
        self.assertEqual(Recording(path).pid, child.pid)
        self.assertEqual(len(list(self.folder.glob("r.*"))), 1)

    def test_no_place_for_a_file(self):
        self.run_program(PROGRAM, 100, RECORD=self.folder / "no/such/folder/r",
                         allow=["cannot make the recording .*No such file or directory"])


if __name__ == "__main__":
    unittest.main()
