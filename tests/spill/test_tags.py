#!/usr/bin/env python3
"""Tags: memory that a program named is paused and resumed by itself, matched by policies, and shown
in reports. And pauses of call sites."""
import collections
import json
import re
import subprocess

import spill  # finds the harness
import harness
from harness import COMMAND

REGIONS = harness.ROOT / "tests/spill/regions"
PAUSED = harness.ROOT / "tests/spill/paused"
PART = 4 * 5  # MiB of each part: two are tagged, one is not
OPTIONS = {"SUMMARY": "off", "SIM_MEMORY": "1GiB", "CHECK": "on"}


class Tags(harness.Case):
    def command(self, name, *arguments, status=0):
        result = self.run_command([COMMAND, name, *arguments], harness.environment(False, False))
        self.assertEqual(result.status, status, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def start(self, *command, **options):
        """A program that holds memory, with its statistics in the folder."""
        stats = self.folder / f"stats-{next(self.numbers)}"
        env = harness.environment(**{**OPTIONS, "CONTROL": "on", "STATS": stats, **options})
        program = subprocess.Popen(command or [REGIONS, "serve"], env=env, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        program.stats = stats
        self.addCleanup(self.kill, program)
        program.stdout.readline()
        return program

    def kill(self, program):
        if program.poll() is None:
            program.kill()
        for stream in program.stdin, program.stdout, program.stderr:
            stream.close()
        program.wait()

    def end(self, program):
        out, err = program.communicate(timeout=120)
        self.assertEqual((program.returncode, out.splitlines()[-1]), (0, "ok"), out + err)
        self.assertNotRegex(err, "BUG|broken")
        return json.loads(program.stats.read_text())

    def host(self, program):
        """MiB of the program's that are on the host."""
        shown = json.loads(self.command("top", program.pid, "--once", "--json"))
        return sum(device["host_used_bytes"] for device in shown["devices"]) // harness.MIB

    def test_functions(self):
        result = self.run_program(REGIONS, "api", **OPTIONS)
        lines = result.stdout.splitlines()
        places = [list(map(int, re.findall(r"\d+", line.split(":")[1]))) for line in lines[:-2]]
        words = [line.split(":")[0] for line in lines[:-2]]
        on_host = [place[2] for place in places]
        self.assertEqual(words[:4], ["all", "pause_tag", "pause_tag", "resume_tag"])
        self.assertEqual(on_host[:7], [0, PART, 2 * PART, PART, 2 * PART, PART, 0])
        self.assertEqual(on_host[7:10], [3 * PART, 2 * PART, 0])
        self.assertEqual([place[0] for place in places], [0] * 10 + [1] * 4)
        self.assertEqual(on_host[10:], [0] * 4)
        for device, host in (place[1:] for place in places[:10]):
            self.assertGreaterEqual(device + host, 3 * PART)
        self.assertEqual(lines[-2:], ["names 0 1 1 1 0", "ok"])

    def test_rules(self):
        """The functions for a rule; what is no rule's name ends no pause."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "cache", "match": {"tag": "kv-cache"}, "action": {"priority": 0}}]}))
        result = self.run_program(REGIONS, "rules", POLICY=policy, **OPTIONS)
        places = [re.fullmatch(r"(\w+): (\d+), device \d+, host (\d+)", line).groups()
                  for line in result.stdout.splitlines()[:-1]]
        self.assertEqual(places, [("pause_rule", "0", str(PART)), ("resume_rule", "1", str(PART)),
                                  ("resume_rule", "0", "0")])

    def test_without_sites(self):
        """Tags have no effect, and the program is told so."""
        result = self.run_program(REGIONS, "api", status=1, SITES="off", **OPTIONS)
        self.assertRegex(result.stdout, r'spillway_tag.* = 801\n$')

    def test_pause_by_tag(self):
        program = self.start()
        said = self.command("pause", "--tag", "kv-cache", program.pid)
        self.assertRegex(said, rf": {PART} MiB went to the host.*; the program goes on\n$")
        self.command("pause", "--tag", "weights", program.pid)
        self.assertEqual(self.host(program), 2 * PART)
        self.assertRegex(self.command("top", "--once", program.pid), "(?m)^paused in part$")
        self.command("resume", "--tag", "kv-cache", program.pid)
        self.assertEqual(self.host(program), PART)
        self.assertRegex(self.command("top", "--once", program.pid), "(?m)^paused in part$")
        self.command("resume", "--tag", "weights", program.pid)
        self.assertEqual(self.host(program), 0)
        said = self.command("resume", "--tag", "weights", program.pid, status=1)
        self.assertIn("it is not paused", said)
        for command in "pause", "resume":
            self.command("pause", "--tag", "weights", program.pid)
            said = self.command(command, "--tag", "kv", program.pid, status=1)
            self.assertIn("none of its memory was asked for under that tag", said)
            self.assertEqual(self.host(program), PART)
            self.command("resume", program.pid)
        self.end(program)

    def test_pause_as_a_whole(self):
        """All comes back together then."""
        program = self.start()
        self.command("pause", "--tag", "kv-cache", program.pid)
        self.command("pause", program.pid)
        said = self.command("resume", "--tag", "kv-cache", program.pid, status=1)
        self.assertIn("all of its memory is paused", said)
        self.assertEqual(self.host(program), 3 * PART)
        self.command("resume", program.pid)
        self.assertEqual(self.host(program), 0)
        self.end(program)

    def test_processes_of_which_one_has_no_such_part(self):
        """Nothing changes, neither what is asked for nor what was paused before."""
        program, other = self.start(), self.start(PAUSED, "1", "1")
        self.command("pause", "--tag", "weights", program.pid)
        for pids in (program.pid, other.pid), (other.pid, program.pid):
            said = self.command("pause", "--tag", "kv-cache", *pids, status=1)
            self.assertIn(f"process {other.pid}: none of its memory was asked for under", said)
            self.assertIn(f"process {program.pid}: it goes on, as not all could be paused", said)
            self.assertEqual(self.host(program), PART)
            self.assertRegex(self.command("top", "--once", program.pid), "(?m)^paused in part$")
        self.end(program)
        self.end(other)

    def test_pause_by_site(self):
        """By a part of the labels that the reports print."""
        program = self.start()
        label = "regions tagged kv-cache"
        self.assertIn(label, self.command("top", program.pid, "--once"))
        for part, moved in (label, PART), ("regions*kv-c?che", PART), ("regions", 3 * PART):
            self.command("pause", "--site", part, program.pid)
            self.assertEqual(self.host(program), moved, part)
            self.command("resume", "--site", part, program.pid)
            self.assertEqual(self.host(program), 0)
        said = self.command("pause", "--site", "regions untagged", program.pid, status=1)
        self.assertIn("none of its call sites matches that", said)
        self.end(program)

    def test_many_parts(self):
        """Of 32 parts each is known; with more, the pause ends when all memory comes back."""
        for count, paused in ((32, False), (33, True)):
            with self.subTest(count):
                program = self.start()
                parts = ["regions tagged kv-cache" + "*" * i for i in range(count)]
                for command in "pause", "resume":
                    for part in parts:
                        self.command(command, "--site", part, program.pid)
                self.assertEqual(self.host(program), 0)
                shown = self.command("top", "--once", program.pid)
                self.assertEqual("paused in part" in shown, paused)
                self.command("resume", program.pid, status=0 if paused else 1)
                self.assertNotIn("paused in part", self.command("top", "--once", program.pid))
                self.end(program)

    def test_wrong_use(self):
        for arguments, said in (
                (("--tag", "a", "--rule", "b"), "expected one of --rule, --site and --tag, once"),
                (("--tag", "a", "--tag", "b"), "expected one of --rule, --site and --tag, once"),
                (("--tag", ""), "expected a name of 1 to 159 characters, not ''"),
                (("--site", "x" * 160), "expected a name of 1 to 159 characters, not 'xxxx"),
                (("--tag", "a", "--to", "/tmp"), "--rule, --site and --tag go with --to host only"),
                (("--tag", "a", "--on-demand"), "not with --on-demand")):
            self.assertIn(said, self.command("pause", *arguments, 1, status=2))

    def test_policy(self):
        """A rule may match by tag."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "cache", "match": {"tag": ["kv-*"]}, "action": {"placement": "host"}}]}))
        program = self.start(POLICY=policy)
        self.assertEqual(self.host(program), PART)
        self.end(program)
        said = "rules match on tags, but SPILLWAY_SITES is off"
        result = self.run_program(PAUSED, "api", 1, SITES="off", POLICY=policy, allow=[said])
        self.assertIn(said, result.stderr)

    def test_reports(self):
        recording = self.folder / "recording"
        program = self.start(RECORD=recording)
        stats = self.end(program)
        found = collections.Counter()
        for site in stats["sites"]:  # a loop that the compiler unrolls has several
            found[site.get("tag")] += site["peak_bytes"]
        self.assertEqual(found, dict.fromkeys(("weights", "kv-cache", None), PART * harness.MIB))
        text = self.command("sites", program.stats, "--text")
        self.assertRegex(text, "tag:kv-cache")
        text = re.findall("native:.*tag:kv-cache.*", text)[0]
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [
            {"name": "cache", "match": {"tag": "weights"}, "action": {"placement": "host"}}]}))
        said = self.command("policy", "explain", policy, "--site", text)
        self.assertIn('tag is kv-cache, not tag "weights"', said)
        for command in ("sites", program.stats, "--full"), ("report", recording, "--table"):
            self.assertRegex(self.command(*command), "tagged kv-cache", command)


if __name__ == "__main__":
    harness.main()
