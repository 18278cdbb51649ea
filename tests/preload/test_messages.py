#!/usr/bin/env python3
"""Names and values of unknown origin in messages: no control character of theirs reaches the
terminal, and none can forge a line."""
import json
import re
import subprocess
import sys
import unittest

import harness
from harness import COMMAND, PROGRAMS

# In each: an escape sequence, a line of its own, and a change of direction.
EVIL = "\x1b]0;owned\x07\nspillway: forged\u202e\u2028\x7f\x9b31m"
SEEN = "?]0;owned??spillway: forged????31m"
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufffd]")

# Asks for more than there is, from a function, a file and a thread with such names.
SCRIPT = f"""
import ctypes, threading
EVIL = {EVIL!r}
cudart = ctypes.CDLL("libcudart.so.13")
cudart.cudaMallocAsync.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t,
                                   ctypes.c_void_p]
def ask(size):
    block = ctypes.c_void_p()
    return cudart.cudaMallocAsync(ctypes.byref(block), size, None)
def work():
    ctypes.CDLL(None).prctl(15, b"t\\x1b[2J\\nx", 0, 0, 0)
    evil = type(ask)(ask.__code__.replace(co_filename="f" + EVIL, co_name="n" + EVIL), globals())
    assert evil(3 << 20) == 0
    assert evil(1 << 45) == 2
assert ask(512) == 0  # the first call site decides whether Python is read
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@unittest.skipIf(harness.SANITIZED, "Python is not built with the sanitizer")
class Messages(harness.Case):
    def check(self, text):
        self.assertEqual(HARMFUL.findall(text), [], text)
        self.assertNotRegex(text, "(?m)^spillway: forged")

    def run_it(self, *command, status=0, **options):
        """Python gives the bytes as they are: surrogates where they are no UTF-8."""
        env = harness.environment(preload=False, sim=command[0] != COMMAND, **options)
        if command[0] != COMMAND:
            env["LD_PRELOAD"] = str(harness.OBJECT)
        done = subprocess.run([str(word) for word in command], env=env, capture_output=True,
                              timeout=120, cwd=self.folder, check=False)
        text = (done.stdout + done.stderr).decode(errors="replace")
        self.assertEqual(done.returncode, status, text)
        return text

    def test_process(self):
        """Out of memory, the summary, bad variables, and statistics, which keep what names are."""
        stats = self.folder / "s.json"
        text = self.run_it(sys.executable, "-c", SCRIPT, STATS=stats,
                           **{"LIMIT" + EVIL: "1", "GROWTH": EVIL})
        self.check(text)
        self.assertIn(f"requested by f{SEEN}:", text)
        self.assertIn(f" n{SEEN} on t?[2J?x (cudaMallocAsync)\n", text)
        self.assertIn(f"SPILLWAY_GROWTH={SEEN}: ", text)
        self.assertIn(f"SPILLWAY_LIMIT{SEEN}", text)
        self.check(stats.read_text())
        files = [frame["file"] for site in json.loads(stats.read_text())["sites"]
                 for frame in site["python"]]
        self.assertIn("f" + EVIL, files)

    def test_verdict(self):
        text = self.run_it(COMMAND, "sim", "--summary", "off", "--", sys.executable, "-c", SCRIPT,
                           SIM_FAIL=EVIL, SIM_LOG="/no\x1b/folder")
        self.check(text)
        self.assertIn(f"SPILLWAY_SIM_FAIL={SEEN}: expected", text)
        self.assertIn("SPILLWAY_SIM_LOG=/no?/folder: cannot be written", text)

    def test_command(self):
        evil = EVIL.replace("/", "")
        policy = self.folder / f"{evil}.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "a", "match": {"python": {"file": EVIL}}, "action": {"placement": "host"}}]}))
        bad = self.folder / f"bad{evil}"
        bad.write_text(json.dumps({"version": 1, EVIL: EVIL}, ensure_ascii=False))
        stats = self.folder / f"s{evil}"
        stats.write_text(json.dumps({"schema": 1, "pid": 1, "mode": EVIL, "devices": [
            {"ordinal": 0, "live_peak_bytes": 1 << 20}]}))
        for words, status, seen in (
                ((EVIL,), 2, f"{SEEN} is not a command"),
                (("sites", EVIL), 1, f"{SEEN}: No such file"),
                (("run", "--limit", EVIL, "--", "true"), 2, SEEN),
                (("run", "--" + EVIL, "--", "true"), 2, SEEN),
                (("sim", "--", self.folder / evil), 127, SEEN),
                (("sim", "--policy", EVIL, "--", "true"), 2, SEEN),
                (("policy", "check", policy.name), 0, ""),
                (("policy", "check", bad.name), 1, SEEN),
                (("policy", "check", EVIL), 1, f"{SEEN}:1:1: "),
                (("policy", "explain", policy.name, "--site", "python:a:b:1"), 0,
                 f'file "{SEEN}"'),
                (("check", stats.name, "--max-peak", "1KiB"), 1, f"s{SEEN}: device 0"),
                (("diff", stats.name, stats.name), 0, f"s{SEEN}"),
                (("ranks", stats.name, stats.name), 0, f"s{SEEN}")):
            with self.subTest(words):
                text = self.run_it(COMMAND, *words, status=status)
                self.check(text)
                self.assertIn(seen, text)

    def test_ordinary_names_are_kept(self):
        name = "café €.json"
        self.assertIn(f"{name}: No such file", self.run_it(COMMAND, "sites", name, status=1))


if __name__ == "__main__":
    harness.main()
