#!/usr/bin/env python3
"""Processes that share a device by weight (SPILLWAY_SHARE): one that needs memory gets its share,
whoever is stopped or killed meanwhile, and no content is wrong."""
import json
import os
import pathlib
import random
import signal
import struct
import time

from spill import LONG
from test_pause import LEAST, Program
import harness
from harness import COMMAND, MIB

DEVICE = 160
ENTRY = 64  # bytes of the file's head, and of each entry
SLACK = 24  # MiB: chunks that are held beside the blocks


class Share(harness.Case):
    def setUp(self):
        super().setUp()
        self.run = self.folder / "spillway-run"
        self.run.mkdir()
        self.name = f"test-{os.getpid()}-{next(self.numbers)}"
        self.addCleanup(self.remove)

    def remove(self):
        for path in pathlib.Path("/dev/shm").glob(f"spillway-share-*-{self.name}-*"):
            self.assertEqual((path.stat().st_mode & 0o777, path.stat().st_size), (0o600, 4096))
            path.unlink()

    def start(self, **options):
        """A program that holds 120 MiB."""
        return Program(self, 4, 1, **{"RUN_DIR": self.run, "SIM_MEMORY": f"{DEVICE}MiB",
                                      "SHARE": self.name, "CONTROL": "off", **options})

    def device(self, program):
        result = self.run_command([COMMAND, "top", program.pid, "--once", "--json"],
                                  harness.environment(False, False))
        return json.loads(result.stdout)["devices"][0]

    def committed(self, program):
        return self.device(program)["committed_bytes"] / MIB

    def await_share(self, program, least, most):
        """Waits until the program has so many MiB of the device."""
        program.await_steps()
        end = time.monotonic() + 60
        while not least <= self.committed(program) <= most:
            self.assertLess(time.monotonic(), end, f"{self.committed(program)} MiB")
            program.await_steps(20)

    def test_halves(self):
        first = self.start()
        first.await_steps()
        self.assertGreaterEqual(self.committed(first), 4 * LEAST / MIB)
        second = self.start()
        self.await_share(second, DEVICE / 2 - SLACK, DEVICE / 2 + SLACK)
        self.await_share(first, DEVICE / 2 - SLACK, DEVICE / 2 + SLACK)
        self.assertGreaterEqual(self.device(first)["yielded_bytes"], DEVICE / 8 * MIB)
        second.end()
        first.end()

    def test_weights(self):
        first = self.start()
        first.await_steps()
        second = self.start(WEIGHT=3)
        self.await_share(second, DEVICE * 3 / 4 - SLACK, DEVICE * 3 / 4 + SLACK)
        self.await_share(first, 0, DEVICE / 4 + SLACK)  # it may take what is free for a moment
        first.end()
        second.end()

    def test_contexts(self):
        """What a process has besides its memory counts: here, a context of 74 MiB."""
        options = {"SIM_PROFILE": "gtx1080-8g", "SIM_OVERHEAD": "on", "SIM_MEMORY": "320MiB"}
        first = self.start(**options)
        first.await_steps()
        second = self.start(**options)
        rest = 320 / 2 - 74
        self.await_share(second, rest - SLACK, rest + SLACK)
        self.await_share(first, rest - SLACK, rest + SLACK)
        first.end()
        second.end()

    def test_without_a_share(self):
        """The first one keeps what it has; a program of another share is left alone."""
        for options in {"SHARE": ""}, {"SHARE": f"{self.name}x"}:
            with self.subTest(options):
                first = self.start(**options)
                first.await_steps()
                second = self.start()
                second.await_steps(50)
                self.assertEqual(self.device(first)["yielded_bytes"], 0)
                self.assertGreaterEqual(self.committed(first), 4 * LEAST / MIB)
                second.end()
                first.end()
        for path in pathlib.Path("/dev/shm").glob(f"spillway-share-*-{self.name}x-*"):
            path.unlink()

    def test_a_stopped_process(self):
        """The other one waits for its answer a while, and then spills its own memory."""
        first = self.start()
        first.await_steps()
        first.process.send_signal(signal.SIGSTOP)
        second = self.start()
        second.await_steps(20)
        device = self.device(second)
        self.assertGreater(device["host_used_bytes"], 0)
        first.process.send_signal(signal.SIGCONT)
        first.await_steps()
        second.end()
        first.end()

    def test_a_killed_process(self):
        """It is forgotten: the other one gets all of the device."""
        first = self.start()
        second = self.start()
        first.await_steps()
        second.await_steps(20)
        first.process.kill()
        first.process.wait()
        self.await_share(second, 4 * LEAST / MIB - SLACK, DEVICE)
        second.end()

    def test_phases(self):
        """At any offset both end with right content, or the one that is left does."""
        for seed in range(50 if LONG else 4):
            draw = random.Random(seed)
            with self.subTest(seed=seed):
                programs = [self.start()]
                time.sleep(draw.random())
                programs.append(self.start(WEIGHT=draw.randint(1, 4)))
                time.sleep(draw.random() * 2)
                if seed % 2:
                    draw.shuffle(programs)
                    programs.pop().process.kill()
                for program in programs:
                    program.await_steps()
                for program in programs:
                    program.end()

    def test_bad_names(self):
        for name in "a/b", "x" * 64, "é":
            program = self.start(SHARE=name)
            program.await_steps(1)
            _, err = program.process.communicate(timeout=60)
            self.assertIn(f"SPILLWAY_SHARE={name}: expected letters, digits", err)

    def test_files_of_others(self):
        """A link, a file of another version or of another user is not used."""
        program = self.start()
        program.await_steps(1)
        program.end()
        (path,) = pathlib.Path("/dev/shm").glob(f"spillway-share-*-{self.name}-*")
        good = path.read_bytes()
        target = self.folder / "target"
        target.write_bytes(good)
        other = good[:4] + struct.pack("I", 2) + good[8:]
        for number, content in enumerate((None, bytes(4) + good[4:], b"x" * 8000, other)):
            path.unlink()
            if content is None:
                path.symlink_to(target)
            else:
                path.write_bytes(content)
                path.chmod(0o600)
            err = self.said_alone()
            self.assertEqual("is not shared: no file in /dev/shm that is only this user's" in err,
                             number != 1, err)
            self.assertTrue(number == 1 or content is None or path.read_bytes() == content)
        path.unlink()

    def said_alone(self, **options):
        """What a program says that ends well after a few steps."""
        program = self.start(**options)
        program.await_steps()
        out, err = program.process.communicate(timeout=60)
        self.assertEqual(out.splitlines()[-1], "ok", err)
        return err

    def entries(self):
        """The path of the file, and its entries: owner, weight, wanted bytes, given bytes, number
        of requests, and number of the one that was answered last."""
        (path,) = pathlib.Path("/dev/shm").glob(f"spillway-share-*-{self.name}-*")
        return path, list(struct.iter_unpack("QQQQII24x", path.read_bytes()[ENTRY:]))

    def test_no_entry_is_free(self):
        """All are those of a process that lives."""
        self.said_alone()
        path, _ = self.entries()
        start = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        owner = struct.pack("Q", int(start) << 22 | os.getpid())
        good = path.read_bytes()
        path.write_bytes(good[:ENTRY] + (owner + bytes(ENTRY - 8)) * 63)
        err = self.said_alone()
        self.assertIn(f"SPILLWAY_SHARE={self.name}: device 0 is not shared: too many processes "
                      "share it", err)
        path.write_bytes(good)

    def test_device_without_a_name(self):
        err = self.said_alone(SIM_FAIL="cuDeviceGetUuid_v2:1+:999")
        self.assertIn("device 0 is not shared: no file in /dev/shm", err)
        self.assertEqual(list(pathlib.Path("/dev/shm").glob(f"spillway-share-*-{self.name}-*")), [])

    def test_a_process_with_little(self):
        """It has less than its share, gives nothing, and is not asked again at once; what lacks is
        held by a process without a share."""
        options = {"RUN_DIR": self.run, "SIM_MEMORY": "80MiB", "CONTROL": "off"}
        first = Program(self, "spin", SHARE=self.name, **options)
        first.steps()
        outsider = Program(self, "keep", 1, 1, SHARE="", **options)
        outsider.await_steps()
        begin = time.monotonic()
        second = self.start(SIM_MEMORY="80MiB", WEIGHT=3)
        second.await_steps(200)
        asked = [entry[3:5] for entry in self.entries()[1] if entry[0] & (1 << 22) - 1 == first.pid]
        times = 1 + int((time.monotonic() - begin) / 2)  # by each of four threads
        self.assertEqual(asked[0][0], 0)
        self.assertIn(asked[0][1], range(1, 4 * times + 1))
        self.assertEqual(self.device(first)["yielded_bytes"], 0)
        self.assertGreater(self.device(second)["host_used_bytes"], 0)
        for program in second, outsider, first:
            program.end()


if __name__ == "__main__":
    harness.main()
