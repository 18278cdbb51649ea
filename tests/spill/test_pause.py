#!/usr/bin/env python3
"""spillway pause and resume, and the functions of spillway.h: memory goes to the host and comes
back, the program waits meanwhile, and no content is wrong."""
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import subprocess
import time

from spill import LONG, PINNED
import harness
from harness import COMMAND, MIB

PAUSED = harness.ROOT / "tests/spill/paused"
INTERRUPTED = harness.ROOT / "tests/spill/interrupted"
BLOCKS = 6 * 5 * MIB  # of a thread
LEAST = 5 * 5 * MIB  # while one of them is replaced
OPTIONS = {"CONTROL": "on", "SUMMARY": "off", "SIM_MEMORY": "1GiB", "CHECK": "on"}


class Program:
    """A program that works until it is ended, under spillway."""

    def __init__(self, case, *words, program=PAUSED, **options):
        case.number = getattr(case, "number", 0) + 1
        self.stats = case.folder / f"stats{case.number}"
        self.case = case
        env = harness.environment(**{**OPTIONS, "STATS": self.stats, **options})
        self.process = subprocess.Popen([program, *map(str, words)], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, cwd=case.folder)
        case.addCleanup(self.kill)
        self.pid = self.process.pid

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        for stream in self.process.stdin, self.process.stdout, self.process.stderr:
            stream.close()
        self.process.wait()

    def steps(self):
        """How many steps are done, as of a line that is printed after this call."""
        self.drain()
        self.process.stdout.readline()
        return int(self.process.stdout.readline())

    def drain(self):
        """Skips what was printed before."""
        os.set_blocking(self.process.stdout.fileno(), False)
        try:
            while self.process.stdout.read(65536):
                pass
        except TypeError:  # nothing there
            pass
        os.set_blocking(self.process.stdout.fileno(), True)

    def await_steps(self, more=5):
        first, end = self.steps(), time.monotonic() + 60
        while self.steps() < first + more:
            self.case.assertLess(time.monotonic(), end, "the program does not go on")

    def await_stop(self):
        """Waits until no step is done any more. How many were done."""
        before, now, end = -1, self.steps(), time.monotonic() + 60
        while now != before:
            self.case.assertLess(time.monotonic(), end, "the program does not stop")
            time.sleep(1)
            before, now = now, self.steps()
        return now

    def end(self):
        """Ends it, and checks that all content was right. Its statistics."""
        out, err = self.process.communicate(timeout=120)
        self.case.assertEqual((self.process.returncode, out.splitlines()[-1]), (0, "ok"), out + err)
        self.case.assertNotRegex(err, "BUG|broken")
        return json.loads(self.stats.read_text())


class Pause(harness.Case):
    def command(self, name, *arguments, status=0):
        result = self.run_command([COMMAND, name, *arguments], harness.environment(False, False))
        if status is not None:
            self.assertEqual(result.status, status, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def committed(self, pid):
        result = self.run_command([COMMAND, "top", pid, "--once", "--json"],
                                  harness.environment(False, False))
        shown = json.loads(result.stdout)
        return shown["paused"], sum(device["committed_bytes"] for device in shown["devices"])

    def swapped(self, pid):
        result = self.run_command([COMMAND, "top", pid, "--once", "--json"],
                                  harness.environment(False, False))
        return sum(device["swapped_bytes"] for device in json.loads(result.stdout)["devices"])

    def test_the_program_waits(self):
        program = Program(self, 4, 1)
        program.await_steps()
        said = self.command("pause", program.pid)
        self.assertRegex(said, rf"^paused 4 \(pid {program.pid}\): 1\d\d(\.\d+)? MiB went to the "
                               r"host.*; the program waits for spillway resume\n$")
        self.assertEqual(self.committed(program.pid), (True, 0))
        steps = program.steps()
        time.sleep(0.3)
        self.assertEqual(program.steps(), steps)
        self.assertIn("it is paused already", self.command("pause", program.pid, status=1))
        self.assertRegex(self.command("resume", program.pid), "MiB went back to the device\n$")
        paused, committed = self.committed(program.pid)
        self.assertFalse(paused)
        self.assertGreaterEqual(committed, 4 * LEAST)
        program.await_steps()
        self.assertIn("it is not paused", self.command("resume", program.pid, status=1))
        device = program.end()["devices"][0]
        self.assertEqual((device["live_bytes"], device["host_bytes"]), (0, 0))
        self.assertGreaterEqual(device["spilled_bytes"], 4 * LEAST)

    def test_on_demand(self):
        """Memory comes back when the program needs it, which is at once."""
        program = Program(self, 2, 1)
        for _ in range(20 if LONG else 5):
            program.await_steps()
            self.assertIn("comes back when", self.command("pause", "--on-demand", program.pid))
        program.await_steps()
        self.assertIn("it is not paused", self.command("resume", program.pid, status=1))
        device = program.end()["devices"][0]
        self.assertGreaterEqual(device["promoted_bytes"], 5 * 2 * LEAST)

    def test_many_times(self):
        """On two devices, by their threads; nothing is left. All that went comes back, but what a
        thread frees meanwhile: a free does not wait."""
        for words in ((4, 2), ("keep", 4, 2), ("graphs", 4, 2)):
            with self.subTest(words):
                program = Program(self, *words, SIM_DEVICES=2)
                program.await_steps()
                for _ in range(1000 if LONG else 8):
                    self.command("pause", program.pid)
                    self.command("resume", program.pid)
                program.await_steps()
                for device in program.end()["devices"]:
                    self.assertEqual((device["live_bytes"], device["host_bytes"]), (0, 0))
                    freed = device["spilled_bytes"] - device["promoted_bytes"]
                    self.assertGreaterEqual(freed, 0)
                    self.assertEqual(freed % (2 * MIB), 0)
                    if "keep" in words:
                        self.assertEqual(freed, 0)

    def test_memory_of_graphs(self):
        """It goes, too, as nothing is launched; it comes back first, and stays then."""
        program = Program(self, "graphs", 4, 1)
        program.await_steps()
        self.command("pause", program.pid)
        self.assertEqual(self.committed(program.pid), (True, 0))
        self.command("resume", program.pid)
        program.await_steps()
        self.command("pause", "--on-demand", program.pid)
        program.await_steps()
        device = program.end()["devices"][0]
        self.assertEqual((device["live_bytes"], device["host_bytes"]), (0, 0))
        self.assertEqual(device["promoted_bytes"], device["spilled_bytes"])

    def test_two_processes(self):
        """One command for both: each gives its memory."""
        programs = [Program(self, 2, 1) for _ in range(2)]
        for program in programs:
            program.await_steps()
        pids = [program.pid for program in programs]
        self.assertEqual(self.command("pause", *pids).count("went to the host"), 2)
        self.assertEqual(self.command("resume", *pids).count("went back"), 2)
        for program in programs:
            program.end()

    def start_ring(self, count, ahead, **options):
        """Processes whose work waits for that of each other."""
        flags = self.folder / f"flags{count}{ahead}"
        flags.write_bytes(bytes(4096))
        programs = [Program(self, "ring", flags, i, count, ahead,
                            **{"SIM_DEVICES": count, **options}) for i in range(count)]
        for program in programs:
            program.await_steps()
        return programs

    def end_ring(self, programs):
        programs[0].process.stdin.close()
        with concurrent.futures.ThreadPoolExecutor() as pool:  # all must be able to print
            outputs = pool.map(lambda program: program.process.stdout.read(), programs)
        self.assertEqual([output.splitlines()[-1] for output in outputs], ["ok"] * len(programs))

    def test_ranks_that_wait_for_each_other(self):
        """They are paused together, however far one is ahead of another, and also where their
        memory is not all on the devices."""
        for count, ahead, options in ((2, 1, {}), (3, 4, {}), (2, 1, {"LIMIT": "12MiB"})):
            with self.subTest(count=count, ahead=ahead, **options):
                programs = self.start_ring(count, ahead, **options)
                pids = [program.pid for program in programs]
                for _ in range(50 if LONG else 6):
                    self.assertEqual(self.command("pause", *pids).count("went to the host"), count)
                    self.assertEqual(self.command("resume", *pids).count("went back"), count)
                    programs[0].await_steps()
                self.end_ring(programs)

    def test_one_that_is_named_twice(self):
        program = Program(self, 1, 1)
        program.await_steps()
        for name in ("pause", "resume") * 5:
            said = self.command(name, program.pid, program.pid)
            self.assertEqual(len(said.splitlines()), 1, said)
        program.end()

    def test_one_of_two_ranks(self):
        """Two are paused or none."""
        programs = self.start_ring(2, 1)
        pids = [program.pid for program in programs]
        self.assertIn("went to the host", self.command("pause", "--wait", "1", pids[0]))
        said = self.command("pause", "--wait", "1", *pids, status=1)
        self.assertRegex(said, f"process {pids[0]}: it is paused already\n"
                               f".*process {pids[1]}: it goes on, as not all could be paused")
        self.command("resume", pids[0])
        programs[1].await_steps()
        self.end_ring(programs)

    def test_the_command_ends_while_it_holds(self):
        """The programs go on by themselves."""
        busy, idle = Program(self, "spin"), Program(self, 1, 1)
        waited = 0
        for seconds in 1, 4, 16:  # until it is held
            if waited < 3:
                idle.await_steps()
                with subprocess.Popen([COMMAND, "pause", str(idle.pid), str(busy.pid)],
                                      env=harness.environment(False, False)) as command:
                    time.sleep(seconds)
                    command.kill()
                begin = time.monotonic()
                idle.await_steps()
                waited = time.monotonic() - begin
        self.assertGreater(waited, 3)
        self.assertFalse(self.committed(idle.pid)[0])
        for program in busy, idle:
            program.end()

    def test_a_full_host(self):
        """What has no room stays, and is said."""
        program = Program(self, 4, 1, HOST_LIMIT="40MiB")
        program.await_steps()
        said = self.command("pause", program.pid)
        self.assertRegex(said, r": (3\d(\.\d+)?|40) MiB went to the host, [789]\d(\.\d+)? MiB stay "
                               r"on the device \(the budget of host memory is used up")
        self.command("resume", program.pid)
        program.await_steps()
        program.end()

    def test_another_takes_the_device(self):
        """What finds no room afterwards is used on the host, also after a pause to a file."""
        for i, to in enumerate(((), ("--to", self.folder))):
            with self.subTest(to):
                shared = {"RUN_DIR": self.folder / f"spillway-run{i}", "SIM_MEMORY": "180MiB"}
                shared["RUN_DIR"].mkdir()
                first = Program(self, *("graphs",) * i, 4, 1, **shared)
                first.await_steps()
                self.command("pause", *to, first.pid)
                second = Program(self, 4, 1, **shared)
                second.await_steps()
                self.assertRegex(self.command("resume", first.pid),
                                 r"MiB went back to the device, \d+(\.\d+)? MiB stay on the host "
                                 "for lack")
                first.await_steps()
                second.await_steps()
                second.end()
                first.end()

    def test_a_file(self):
        """Memory goes to a file without a name, also where nothing can move to the host."""
        for options in {}, {"SIM_HOST_NUMA": "off"}, {"SIM_DEVICES": 2}:
            with self.subTest(options):
                program = Program(self, 4, options.get("SIM_DEVICES", 1), **options)
                program.await_steps()
                folder = self.folder / "swap"
                folder.mkdir(exist_ok=True)
                said = self.command("pause", "--to", folder, program.pid)
                self.assertRegex(said, rf"^paused 4 \(pid {program.pid}\): 1\d\d(\.\d+)? MiB went "
                                       r"to a file.*; the program waits for")
                self.assertEqual(list(folder.iterdir()), [])
                self.assertEqual(self.committed(program.pid), (True, 0))
                self.assertGreaterEqual(self.swapped(program.pid), 4 * LEAST)
                steps = program.steps()
                time.sleep(0.3)
                self.assertEqual(program.steps(), steps)
                self.assertRegex(self.command("resume", program.pid),
                                 r"MiB went back to the device\n$")
                self.assertEqual(self.swapped(program.pid), 0)
                program.await_steps()
                for device in program.end()["devices"]:
                    self.assertEqual((device["live_bytes"], device["host_bytes"]), (0, 0))

    def test_a_file_many_times(self):
        """With graphs, on two devices, and after pauses to the host."""
        program = Program(self, "graphs", 4, 2, SIM_DEVICES=2)
        program.await_steps()
        for i in range(1000 if LONG else 8):
            to = ("--to", self.folder) if i % 3 else ()
            self.command("pause", *to, program.pid)
            self.command("resume", program.pid)
        for _ in range(5):
            program.await_steps()
            self.command("pause", "--on-demand", "--to", self.folder, program.pid)
        program.await_steps()
        for device in program.end()["devices"]:
            self.assertEqual((device["live_bytes"], device["host_bytes"]), (0, 0))

    def swap_file(self, pid):
        """The path of the file that a program's memory is in."""
        return next(link for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()
                    if str(link.readlink()).startswith(f"{self.folder}/"))

    def test_a_damaged_file(self):
        """What is not what was written is never used: the pause goes on."""
        program = Program(self, 2, 1)
        program.await_steps()
        self.command("pause", "--to", self.folder, program.pid)
        file = self.swap_file(program.pid)
        whole = file.read_bytes()
        for content in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:-1], b""):
            file.write_bytes(content)
            said = self.command("resume", program.pid, status=1)
            self.assertIn("the content of the file cannot be read back; it stays paused: ", said)
            steps = program.steps()
            time.sleep(0.2)
            self.assertEqual(program.steps(), steps)
        file.write_bytes(whole)
        self.command("resume", program.pid)
        program.await_steps()
        program.end()

    def test_a_full_disk(self):
        """What the file does not take stays on the device."""
        program = Program(self, 4, 1)
        program.await_steps()
        resource.prlimit(program.pid, resource.RLIMIT_FSIZE,
                         (40 * MIB, resource.RLIM_INFINITY))
        said = self.command("pause", "--to", self.folder, program.pid)
        self.assertRegex(said, r": (3\d(\.\d+)?|40) MiB went to a file, [789]\d(\.\d+)? MiB stay "
                               r"on the device \(the file cannot grow: File too large\)")
        self.command("resume", program.pid)
        program.await_steps()
        resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        program.end()

    def test_no_room_for_the_file(self):
        """Another program took the device, and the host has no room: the pause goes on."""
        shared = {"RUN_DIR": self.folder / "spillway-run", "SIM_MEMORY": "180MiB"}
        shared["RUN_DIR"].mkdir()
        first = Program(self, 4, 1, SIM_HOST_NUMA="off", **shared)
        first.await_steps()
        self.command("pause", "--to", self.folder, first.pid)
        second = Program(self, 4, 1, **shared)
        second.await_steps()
        said = self.command("resume", first.pid, status=1)
        self.assertIn("neither the device nor the host has room for the content of the file; "
                      "it stays paused", said)
        second.await_steps()
        second.end()
        self.assertRegex(self.command("resume", first.pid), "MiB went back to the device\n$")
        first.await_steps()
        self.command("pause", "--to", self.folder, "--on-demand", first.pid)
        first.await_steps()
        first.end()

    def test_folders_that_are_refused(self):
        program = Program(self, 1, 1)
        program.await_steps()
        for to, said in (("x", "--to x: expected host or a folder: No such file or directory"),
                         (COMMAND, "expected host or a folder: it is a file")):
            self.assertIn(said, self.command("pause", "--to", to, program.pid, status=2))
        said = self.command("pause", "--to", self.folder, "--rule", "x", program.pid, status=2)
        self.assertIn("--rule, --site and --tag go with --to host only", said)
        said = self.command("pause", "--to", "/proc", program.pid, status=1)
        self.assertIn("it cannot write a file there; the program goes on: ", said)
        program.await_steps()
        program.end()
        program = Program(self, "spin")
        program.steps()
        said = self.command("pause", "--wait", "1", "--to", self.folder, program.pid, status=1)
        self.assertIn("the device did not become idle in time; the program goes on", said)
        program.end()

    def test_a_rule(self):
        """Only its memory moves, and the program goes on."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "one", "match": {"nth": 1}, "action": {"priority": 0}},
            {"name": "rest", "match": {"nth": "2-"}, "action": {"priority": 0}}]}))
        program = Program(self, "spin", POLICY=policy)
        program.steps()
        said = self.command("pause", "--rule", "x", program.pid, status=1)
        self.assertIn("its policy has no rule of that name", said)
        program.end()
        program = Program(self, 2, 1, POLICY=policy)
        program.await_steps()
        said = self.command("pause", "--rule", "rest", program.pid)
        self.assertRegex(said, r": [34567]\d(\.\d+)? MiB went to the host.*; the program goes on")
        self.assertRegex(self.command("top", "--once", program.pid), "(?m)^paused in part$")
        program.await_steps()
        self.command("pause", "--rule", "one", program.pid)
        self.command("pause", program.pid)
        self.assertIn("is paused already",
                      self.command("pause", "--rule", "one", program.pid, status=1))
        self.command("resume", program.pid)
        program.await_steps()
        self.command("pause", "--rule", "one", program.pid)
        self.command("resume", program.pid)
        self.assertIn("it is not paused", self.command("resume", program.pid, status=1))
        program.end()
        program = Program(self, "keep", 1, 1, POLICY=policy)
        program.await_steps()
        self.assertRegex(self.command("pause", "--rule", "one", program.pid),
                         r": [468] MiB went to the host")  # of a block of 5
        program.end()

    def test_refused(self):
        for options, said in (
                ({"SPILL": "off"}, "SPILLWAY_SPILL is off"),
                ({"SIM_HOST_NUMA": "off"}, "its memory cannot move to the host"),
                ({"CONTROL": "off"}, "it does not listen"),
                ({"CONTROL": "auto"}, "it does not listen")):
            with self.subTest(options):
                program = Program(self, 1, 1, **options)
                program.await_steps()
                begun = time.monotonic()
                self.assertIn(said, self.command("pause", program.pid, status=1))
                # The thread that listens may be about to start.
                if "listen" in said:
                    self.assertGreaterEqual(time.monotonic() - begun, 0.5)
                program.await_steps()
                program.end()
        self.assertIn("there is no process", self.command("pause", 2 ** 22 + 1, status=1))
        self.assertIn("does not run under spillway", self.command("pause", os.getpid(), status=1))
        for arguments, said in (((), "expected the number of a process"),
                                (("x",), "x: expected the number of a process"),
                                (("1", "--wait", "0"), "expected seconds, from 1 to 3600"),
                                (("1", "--wait", "x"), "--wait x: expected seconds, from 1 to"),
                                (("--on-demnd",), "did you mean --on-demand?")):
            self.assertIn(said, self.command("pause", *arguments, status=2))
        said = self.command("resume", "--on-demand", status=2)
        self.assertIn("--on-demand is not an option", said)

    def test_a_busy_device(self):
        """Also where a thread is inside a call that waits for it. No move is even begun."""
        for what in "spin", "inside":
            with self.subTest(what):
                program = Program(self, what)
                program.steps()
                said = self.command("pause", "--wait", "1", program.pid, status=1)
                self.assertIn("the device did not become idle in time; the program goes on", said)
                self.assertFalse(self.committed(program.pid)[0])
                device = program.end()["devices"][0]
                self.assertEqual(device["spilled_bytes"], 0)
                self.assertEqual(device["abandoned_moves"], 0)

    def test_no_room_meanwhile(self):
        """While a program is held, one of its requests may pass. It is not refused then for a
        reason that may end with the pause, such as memory that cannot move."""
        for program in ("greedy", "creating"):
            with self.subTest(program):
                self.no_room_meanwhile(program)

    def no_room_meanwhile(self, how):
        program = Program(self, how, SIM_MEMORY="256MiB", HOST_LIMIT="64MiB")
        program.await_steps()
        with subprocess.Popen([COMMAND, "pause", "--wait", "60", str(program.pid)],
                              env=harness.environment(False, False)) as command:
            refused = program.await_stop()
            time.sleep(6)  # a call passes every four seconds, and more often at first
            self.assertEqual(program.steps(), refused)
            command.kill()
        self.command("resume", program.pid)
        program.await_steps()
        program.end()

    def test_killed(self):
        """The program, at any moment of a pause; and the command: then a pause can be ended."""
        for i in range(50 if LONG else 8):
            program = Program(self, 2, 1)
            program.await_steps(1)
            to = ["--to", str(self.folder)] if i % 4 > 1 else []
            with subprocess.Popen([COMMAND, "pause", *to, str(program.pid)], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True,
                                  env=harness.environment(False, False)) as command:
                time.sleep(i % 8 * 0.01)
                if i % 2:
                    program.process.kill()
                    said = command.communicate(timeout=60)[0]
                    self.assertRegex(said, "has ended|went to|there is no process|not run")
                else:
                    command.kill()
                    command.communicate(timeout=60)
                    time.sleep(0.5)
                    paused = self.committed(program.pid)[0]
                    # It may be held, for a pause that does not come any more.
                    self.command("resume", program.pid, status=0 if paused else None)
                    program.await_steps()
                    program.end()

    def begin(self, what):
        """A program that waits for a line."""
        program = Program(self, what, program=INTERRUPTED)
        self.assertEqual(program.process.stdout.readline(), "ready\n")
        return program

    def go(self, program):
        program.process.stdin.write("go\n")
        program.process.stdin.flush()

    def test_a_context_ends_meanwhile(self):
        """It waits for the end of the pause, whose copies are made in it."""
        for delay in (0, 0.03, 0.1):
            for to in [], ["--to", self.folder]:
                with self.subTest(to=to, delay=delay):
                    program = self.begin("context")
                    with concurrent.futures.ThreadPoolExecutor() as pool:
                        pause = pool.submit(self.command, "pause", *to, program.pid)
                        time.sleep(delay)
                        self.go(program)
                        try:
                            self.assertIn("256 MiB went to", pause.result())
                        except AssertionError:  # the context was faster
                            self.assertEqual(program.process.stdout.readline(), "destroyed\n")
                            continue
                    self.command("resume", program.pid)
                    self.assertEqual(program.process.stdout.readline(), "destroyed\n")
                    self.assertEqual(program.process.wait(timeout=60), 0)

    def test_a_child_keeps_no_file(self):
        program = self.begin("fork")
        self.command("pause", "--to", self.folder, program.pid)
        self.go(program)
        child = program.process.stdout.readline().strip()
        deleted = [path for path in pathlib.Path(f"/proc/{child}/fd").iterdir()
                   if "(deleted)" in os.readlink(path)
                   and str(self.folder) in os.readlink(path)]
        self.assertEqual(deleted, [])
        self.command("resume", program.pid)
        self.go(program)
        self.assertEqual(program.process.wait(timeout=60), 0)

    def test_the_program_pauses_itself_meanwhile(self):
        """The one waits for the other, and each gets its turn."""
        program = self.begin("itself")
        self.go(program)
        for to in [], ["--to", self.folder], [], ["--to", self.folder]:
            said = self.command("pause", *to, program.pid, status=None)
            if "the program waits" in said:
                self.command("resume", program.pid)
        self.go(program)
        done = program.process.stdout.readline()
        self.assertRegex(done, r"^paused \d+ times, 0 refused\n$")
        self.assertIn(int(done.split()[1]), range(1, 50))
        self.assertEqual(program.process.stdout.readline(), "0 words wrong\n")
        self.assertEqual(program.process.wait(timeout=60), 0)

    def test_threads_that_are_cancelled(self):
        """While they wait for their turn to pause, or have it: the others still get theirs."""
        program = self.begin("cancelled")
        self.go(program)
        self.assertEqual(program.process.wait(timeout=60), 0)
        self.assertEqual(program.process.stdout.read().splitlines()[-1], "0 words wrong")

    def test_functions(self):
        result = self.run_program(PAUSED, "api", 20, SIM_MEMORY="1GiB")
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:2], ["early 3", "unused 0"])
        for line in lines[2:-1]:
            result, left, used, back = map(int, re.findall(r"\d+", line))
            self.assertEqual((result, left), (0, 0))
            self.assertLessEqual(used, 20)  # what was allocated meanwhile
            self.assertGreaterEqual(back, BLOCKS // MIB)
        self.assertEqual(len(lines[2:-1]), 20)
        result = self.run_program(PAUSED, "graph", SIM_MEMORY="1GiB")
        self.assertEqual(result.stdout.splitlines(), ["capturing 600", "captured 0", "ok"])
        for options in PINNED, {"SPILL": "off"}:
            result = self.run_program(PAUSED, "graph", SIM_MEMORY="1GiB", **options)
            self.assertEqual(result.stdout.splitlines()[1], "captured 801")


if __name__ == "__main__":
    harness.main()
