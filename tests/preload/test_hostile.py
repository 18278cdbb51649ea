#!/usr/bin/env python3
"""spillway top reads the memory of a process that another user may control. Whatever it finds, it
ends by itself, with output or one error line, and writes only text to the terminal. The test is the
hostile process: it holds files named like spillway's."""
import contextlib
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import threading
import traceback

import harness
from harness import COMMAND, PROGRAMS

# Of struct spw_stats and struct spw_callsite_shm; test_layout tells when they have changed.
PID, DEVICES, MODE, PROCESS, TEXT = 20, 24, 41, 41 + 48 + 1024, 1024  # a text is so long
COUNT, MODULE_COUNT, TEXTS_USED, SHARE_DEVICES = 16, 20, 24, 28
SITE_MOST, MODULE_BYTES, MODULE_MOST, MODULE_PATH = 16384, 568, 1024, 53
CHARGES = 2 * 64 * 24  # of device memory, and of page-locked memory
APIS = 32 + CHARGES
OFFSETS = APIS + 4 * (SITE_MOST + 1)
MODULES = OFFSETS + 4 * (SITE_MOST + 1)
TEXTS = MODULES + MODULE_BYTES * MODULE_MOST
SITES = TEXTS + (16 << 20)
HELD = SITES + (32 << 20)
HELD_PINNED = HELD + 64 * 56 * (SITE_MOST + 1)
SHARE_BYTES = HELD_PINNED + 64 * 56 * (SITE_MOST + 1)
WORKERS = 8
ESCAPE = b"\x1b]0;owned\x07\x9b31m\xc2\x9b31m"


def memory_of(pid, name):
    """The used parts of a file mapped by a process: its size, and a list of offset and bytes."""
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        if os.readlink(link).startswith(f"/memfd:{name}"):
            break
    else:
        raise FileNotFoundError(name)
    fd, parts, at = os.open(link, os.O_RDONLY), [], 0
    size = os.fstat(fd).st_size
    with contextlib.suppress(OSError):
        while at < size:
            start = os.lseek(fd, at, os.SEEK_DATA)
            at = os.lseek(fd, start, os.SEEK_HOLE)
            parts.append((start, os.pread(fd, at - start, start)))
    os.close(fd)
    return size, parts


class Memory:
    """A file in memory of this process, a copy of another one's."""
    def __init__(self, name, size, parts):
        self.fd = os.memfd_create(name)
        os.ftruncate(self.fd, size)
        for start, content in parts:
            os.pwrite(self.fd, content, start)

    def put(self, offset, form, *values):
        os.pwrite(self.fd, struct.pack(form, *values) if isinstance(form, str) else form, offset)

    def get(self, offset, form):
        return struct.unpack(form, os.pread(self.fd, struct.calcsize(form), offset))[0]

    def close(self):
        os.close(self.fd)


class Hostile(harness.Case):
    @classmethod
    def setUpClass(cls):
        process = subprocess.Popen([str(PROGRAMS / "sites"), "take", "wait"], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL,
                                   env=harness.environment(SUMMARY="off"))
        assert process.stdout.readline() == "waiting\n"
        cls.real = [memory_of(process.pid, "spillway-stats"),
                    memory_of(process.pid, "spillway-sites")]
        cls.real_pid = process.pid
        process.communicate("\n")

    def setUp(self):
        super().setUp()
        self.own_files()
        self.addCleanup(self.sites.close)
        self.addCleanup(self.stats.close)

    def own_files(self):
        self.stats = Memory("spillway-stats", *self.real[0])
        self.sites = Memory("spillway-sites", *self.real[1])
        self.stats.put(PID, "i", os.getpid())

    def restore(self):
        """Both files as in the real process."""
        for memory, (size, parts) in zip((self.stats, self.sites), self.real):
            os.ftruncate(memory.fd, 0)
            os.ftruncate(memory.fd, size)
            for start, content in parts:
                os.pwrite(memory.fd, content, start)
        self.stats.put(PID, "i", os.getpid())

    def top(self, *arguments, what=""):
        """Runs top on this process; it ends by itself, and says text."""
        done = subprocess.run([str(COMMAND), "top", str(os.getpid()), "--once", *arguments],
                              capture_output=True, timeout=60, check=False,
                              env=harness.environment(False, False))
        self.assertIn(done.returncode, (0, 1), f"{what}\n{done.stderr}")
        for text in done.stdout, done.stderr:
            controls = {char for char in text.decode() if ord(char) < 32 or 127 <= ord(char) < 160}
            self.assertLessEqual(controls, {"\n"}, what)
        if done.returncode == 1:
            self.assertRegex(done.stderr.decode(), r"\Aspillway: top: [^\n]*\n\Z")
        elif arguments == ("--json",):
            json.loads(done.stdout)
        return done

    def side_by_side(self, check, count):
        """Calls check(0), check(1), ... `count` times in processes with files of their own, because
        top spends most of its time waiting."""
        workers = []
        for first in range(WORKERS):
            worker = os.fork()
            if worker == 0:
                status = 1
                try:
                    self.own_files()
                    for number in range(first, count, WORKERS):
                        check(number)
                    status = 0
                except BaseException:  # the process ends here
                    traceback.print_exc()
                os._exit(status)
            workers.append(worker)
        self.assertEqual([os.waitpid(worker, 0)[1] for worker in workers], [0] * WORKERS)

    def labels(self):
        shown = json.loads(self.top("--json").stdout)
        return [site["label"] for site in shown["devices"][0]["sites"]]

    def set_path(self, path):
        """Replaces every library's file by this one, without a build id that would distinguish
        it."""
        for i in range(self.sites.get(MODULE_COUNT, "I")):
            self.sites.put(MODULES + MODULE_BYTES * i + MODULE_PATH - 1, "B", 0)
            self.sites.put(MODULES + MODULE_BYTES * i + MODULE_PATH, os.fsencode(path) + b"\0")

    def test_layout(self):
        """A correct copy is accepted and read."""
        self.assertEqual(self.real[1][0], SHARE_BYTES)
        self.assertIn("take_exported in sites", self.labels())
        self.stats.put(PROCESS, b"renamed\0")
        self.assertIn(b"renamed (pid", self.top().stdout)
        self.set_path(self.folder / "no-library")
        self.assertNotIn("take_exported in no-library", self.labels())

    def listed(self, *arguments):
        """Output of the list of all processes, which this one is in."""
        done = subprocess.run([str(COMMAND), "top", "--once", *arguments], capture_output=True,
                              timeout=60, check=False, env=harness.environment(False, False))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        controls = {char for char in done.stdout.decode() if ord(char) < 32 or
                    127 <= ord(char) < 160}
        self.assertLessEqual(controls, {"\n"})
        return done.stdout.decode()

    def rows(self):
        return [row for row in json.loads(self.listed("--json"))["processes"]
                if row["pid"] == os.getpid()]

    def test_in_the_list(self):
        self.stats.put(PROCESS, ESCAPE + b'"} 1\\\0')
        self.assertEqual(len(self.rows()), 1)
        self.assertIn("?]0;owned?", self.listed())
        path = self.folder / "all.prom"
        self.assertEqual(self.listed("--prometheus", str(path)), "")
        for line in path.read_text().splitlines():
            self.assertFalse(any(ord(char) < 32 or 127 <= ord(char) < 160 for char in line), line)
            if f'pid="{os.getpid()}"' in line:
                self.assertTrue(re.search(r'process="\?\]0;owned\?\?31m\?31m\\"} 1\\\\"} \d',
                                          line), line)
        self.stats.put(PID, "i", self.real_pid)
        self.assertEqual(self.rows(), [])
        self.stats.put(PID, "i", os.getpid())
        os.ftruncate(self.stats.fd, 5000)
        self.assertEqual(self.rows(), [])

    def test_in_the_list_by_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.fchown(self.stats.fd, 12345, 12345)
        self.assertEqual(self.rows(), [])

    def test_wild_figures_in_the_list(self):
        """All counters and texts at their ends, in turn."""
        for byte in b"\xff", b"\x7f", b"\x80":
            self.stats.put(MODE, byte * (self.real[0][0] - MODE))
            self.stats.put(DEVICES, "i", 64)
            row, = self.rows()
            self.assertIsNone(row["rank"])
            self.assertEqual(len(row["devices"]), 64)
            self.listed()
            self.listed("--prometheus", str(self.folder / "all.prom"))

    def test_another_process(self):
        self.stats.put(PID, "i", self.real_pid)
        done = self.top()
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"belong to another process", done.stderr)

    def test_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.fchown(self.stats.fd, 12345, 12345)
        done = self.top()
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"belongs to another user", done.stderr)
        os.fchown(self.stats.fd, 0, 0)
        os.fchown(self.sites.fd, 12345, 12345)
        self.assertEqual(self.labels(), [])

    def test_pipe_as_library(self):
        os.mkfifo(self.folder / "pipe")
        self.set_path(self.folder / "pipe")
        self.assertEqual(self.top("--json").returncode, 0)

    def wild_library(self, seed):
        """Program headers with addresses, offsets and sizes of the attacker's choice."""
        path = self.folder / f"wild{seed}.so"
        base = self.sites.get(MODULES, "Q")
        wild = (0, 1, 4095, 4096, 1 << 20, 1 << 32, 1 << 46, 1 << 47, 1 << 63, (1 << 64) - 1,
                (1 << 64) - 4096, (1 << 64) - base, -base - 4096 & (1 << 64) - 1)
        draw = random.Random(seed)
        head = bytearray((PROGRAMS / "sites").read_bytes()[:64])
        struct.pack_into("<Q", head, 32, draw.choice((64, 64, 64, *wild)))
        struct.pack_into("<HH", head, 54, 56, draw.choice((3, 64, 65535)))
        segments = b"".join(
            struct.pack("<IIQQQQQQ", draw.choice((1, 1, 2, 4)), 7,
                        *(draw.choice(wild) for _ in range(5)), 4096) for _ in range(64))
        path.write_bytes(head + segments + draw.randbytes(8192))
        self.set_path(path)
        self.top(what=f"wild library {seed}")

    def test_wild_libraries(self):
        self.side_by_side(self.wild_library, 64)

    def test_mapping_over_top(self):
        """A library with an address far before its own, near top's memory: its end wraps around to
        a valid one."""
        path = self.folder / "over.so"
        head = bytearray((PROGRAMS / "sites").read_bytes()[:64])
        struct.pack_into("<Q", head, 32, 64)
        struct.pack_into("<HH", head, 54, 56, 1)
        self.set_path(path)
        for bits in (12, 21, 30, 40, 45, 46):
            path.write_bytes(head + struct.pack("<IIQQQQQQ", 1, 5, 0, (1 << 64) - (1 << bits), 0,
                                                (1 << bits) + 4096, 4096, 4096) + bytes(8192))
            self.top(what=f"{bits} bits")

    def test_endless_table(self):
        """A sparse library whose symbol table has no end."""
        path = self.folder / "large.so"
        head = bytearray((PROGRAMS / "sites").read_bytes()[:64])
        struct.pack_into("<Q", head, 32, 64)
        struct.pack_into("<HH", head, 54, 56, 1)
        size = 1 << 36
        with path.open("wb") as file:
            file.write(head + struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096))
            file.seek(4096)
            # The dynamic section: symbols, strings, and a hash table of zeros.
            file.write(struct.pack("<8Q", 6, 8192, 5, 8192, 0x6ffffef5, 1 << 20, 0, 0))
            file.seek(1 << 20)
            file.write(struct.pack("<4I", 1 << 24, 0, 0, 0))
            file.truncate(size)
        self.set_path(path)
        for i in range(self.sites.get(MODULE_COUNT, "I")):
            at = MODULES + MODULE_BYTES * i
            base = self.sites.get(at, "Q")
            self.sites.put(at + 16, "QQ", base + size, base + 4096)
        self.top()

    def test_texts_without_end(self):
        self.stats.put(MODE, b"x" * (self.real[0][0] - MODE))
        self.stats.put(DEVICES, "i", 1)
        self.assertEqual(len(json.loads(self.top("--json").stdout)["process"]), TEXT - 1)
        self.restore()
        self.sites.put(TEXTS_USED, "I", (16 << 20) - 1)
        self.sites.put(TEXTS, b"y" * (16 << 20))
        self.set_path("z" * 515)
        self.top()
        self.top("--json")

    def test_overlapping_sites(self):
        """Sites that share their bytes: making one readable changes another."""
        count = self.sites.get(COUNT, "I")
        self.assertGreaterEqual(count, 2)
        at = self.sites.get(OFFSETS + 4, "I")
        for distance in range(6):
            self.sites.put(OFFSETS + 8, "I", at + distance)
            self.top(what=f"overlap {distance}")
        self.restore()
        self.sites.put(COUNT, "I", 0xFFFFFFFF)
        self.sites.put(MODULE_COUNT, "I", 0xFFFFFFFF)
        self.sites.put(SHARE_DEVICES, "I", 64)
        self.top()

    def test_short_files(self):
        for memory, (size, _) in zip((self.stats, self.sites), self.real):
            for length in (0, 1, 16, 4096, size // 2, size - 1):
                os.ftruncate(memory.fd, length)
                self.top(what=f"{length} of {size}")
            self.restore()

    def test_files_that_shrink(self):
        """Changes both repeatedly while they are read."""
        done = threading.Event()

        def shrink():
            while not done.is_set():
                for memory, (size, parts) in zip((self.stats, self.sites), self.real):
                    os.ftruncate(memory.fd, 4096)
                    os.ftruncate(memory.fd, size)
                    for start, content in parts:
                        os.pwrite(memory.fd, content, start)
                self.stats.put(PID, "i", os.getpid())

        thread = threading.Thread(target=shrink)
        thread.start()
        try:
            for _ in range(10):
                self.top()
        finally:
            done.set()
            thread.join()

    def test_short_library(self):
        path = self.folder / "sites"
        content = (PROGRAMS / "sites").read_bytes()
        path.write_bytes(content)
        self.set_path(path)
        for length in (0, 63, 64, 500, 4096, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:length])
            self.top(what=f"{length} bytes")

    def test_escape_sequences(self):
        self.stats.put(PROCESS, ESCAPE + b"\0")
        self.sites.put(TEXTS, ESCAPE * 20 + b"\0")
        self.set_path(b"/" + ESCAPE + b".so")
        self.assertIn(b"?]0;owned?", self.top().stdout)
        self.assertIn(b"]0;owned", self.top("--json").stdout)

    def test_escape_sequences_in_a_file(self):
        """`spillway sites` with a statistics file from another author."""
        text = "\x1b]0;owned\x07\x7f\u009b31m"
        site = {"id": 1, "device": 0, "live_bytes": 5, "device_peak_bytes": 5, "allocs": 1,
                "thread": text, "api": text, "node": text,
                "python": [{"file": text, "function": text, "line": 1}],
                "native": [{"library": text, "symbol": text}]}
        path = self.folder / "s.json"
        path.write_text(json.dumps({"schema": 1, "devices": [{"live_peak_bytes": 5}],
                                    "sites": [site]}))
        for arguments in (), ("--json",), ("--native",), ("--text",):
            with self.subTest(arguments=arguments):
                done = subprocess.run([str(COMMAND), "sites", str(path), *arguments],
                                      capture_output=True, timeout=60, check=True)
                self.assertIn(b"]0;owned", done.stdout)
                self.assertLessEqual({char for char in done.stdout.decode()
                                      if ord(char) < 32 or 127 <= ord(char) < 160}, {"\n", "\t"})

    def mutate(self, seed):
        """Changes bytes and words of the used parts, by seed."""
        words = (0, 1, 65, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)
        used = (0, 32 + 3 * 24, APIS, OFFSETS, MODULES, TEXTS, SITES, HELD, HELD_PINNED)
        draw = random.Random(seed)
        for _ in range(draw.randint(1, 12)):
            if draw.random() < 0.3:
                memory, at = self.stats, draw.randrange(16, self.real[0][0] - 8)
            else:
                memory, at = self.sites, draw.choice(used) + draw.randrange(draw.choice((32, 600)))
            form = draw.choice(("<B", "<H", "<I", "<Q"))
            size = struct.calcsize(form)
            memory.put(at // size * size, form, draw.choice(words) % (1 << 8 * size)
                       if draw.random() < 0.5 else draw.randrange(1 << min(8 * size, 12)))
        if draw.random() < 0.9:
            self.stats.put(PID, "i", os.getpid())
        self.top(*draw.choice(((), ("--json",))), what=f"seed {seed}")
        self.restore()

    def test_mutations(self):
        self.side_by_side(self.mutate, 160)


if __name__ == "__main__":
    harness.main()
