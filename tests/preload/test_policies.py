#!/usr/bin/env python3
"""Policies in force: what becomes of the blocks that a rule decides on, to the byte."""
import json
import os
import unittest

import harness
from harness import GIB, MIB, PROGRAMS

PROGRAM = PROGRAMS / "policies"
ALPHA = {"native": {"symbol": "alpha"}}
BETA = {"native": {"symbol": "beta"}}
KIB = 1 << 10


class Policies(harness.Case):
    def write(self, *rules):
        """A policy of (name, match, action)."""
        path = self.folder / "policy.json"
        path.write_text(json.dumps({"version": 1, "rules": [
            {"name": name, "match": match, "action": action} for name, match, action in rules]}))
        return path

    def run_rules(self, rules, *words, **options):
        """What the program printed, as [(word, result, free)], and the result of the run."""
        options = {"SIM_MEMORY": "1GiB", "SIM_HOST_MEMORY": "4GiB", "CHECK": "on",
                   "POLICY": self.write(*rules), **options}
        result = self.run_program(PROGRAM, *words, **options)
        lines = [line.split() for line in result.stdout.splitlines()]
        return [(word, int(code), int(free)) for word, code, free in lines], result

    def rule(self, result, name):
        return next(rule for rule in result.stats["rules"] if rule["name"] == name)

    def check(self, result, name, **expected):
        rule = self.rule(result, name)
        self.assertEqual({key: rule[key] for key in expected}, expected)


class Deciding(Policies):
    def test_rules_count_their_blocks(self):
        lines, result = self.run_rules(
            [("a", ALPHA, {}), ("large", {"size": {"min": "8MiB"}}, {}), ("rest", {}, {})],
            "alpha:3", "beta:8", "beta:4", "alpha:9", "free:1", "gamma:1", "free:3")
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.check(result, "a", matched=2, live_bytes=3 * MIB, live_peak_bytes=12 * MIB,
                   host_bytes=0, unmet=0, refused=0, device=0)
        self.check(result, "large", matched=1, live_bytes=0, live_peak_bytes=8 * MIB)
        self.check(result, "rest", matched=2, live_bytes=4 * MIB + KIB)
        self.assertTrue(result.stats["policy"].endswith("policy.json"))

    def test_thread_process_and_count(self):
        words = ["alpha:2"] * 3 + ["thread:4", "beta:2"]
        _, result = self.run_rules(
            [("thread", {"thread": "work*"}, {}), ("others", {"process": "p*s", "nth": "2-"}, {}),
             ("api", {"api": "cuMemAlloc"}, {}), ("elsewhere", {"process": "python*"}, {})], *words)
        self.check(result, "thread", matched=1, live_bytes=4 * MIB)
        self.check(result, "elsewhere", matched=0)
        # Each word is a call of its own in a loop, so one site.
        self.check(result, "others", matched=2)
        self.check(result, "api", matched=1)

    def test_count_restarts_with_each_step(self):
        """Before the first step a block has no number in it."""
        rules = [("first", {**ALPHA, "nth_in_step": 1}, {}),
                 ("third", {**ALPHA, "nth_in_step": "3-"}, {}), ("ever", {**ALPHA, "nth": 1}, {}),
                 ("rest", {}, {})]
        words = ["alpha:2"] * 2 + ["step"] + ["alpha:2"] * 4 + ["step"] * 2 + ["alpha:2"] * 3
        _, result = self.run_rules(rules, *words)
        self.check(result, "first", matched=2)
        self.check(result, "third", matched=3)
        self.check(result, "ever", matched=1)
        self.check(result, "rest", matched=3)

    def test_log_says_each_site_once(self):
        allow = [r"policy: rule a matches on device 0: first 2 MiB at native:.*policies:alpha;"]
        _, result = self.run_rules([("a", ALPHA, {"log": True})], "alpha:2", "alpha:2", "beta:2",
                                   allow=allow)
        self.assertEqual(len(result.said()), 1, result.stderr)

    def test_log_ends(self):
        """It does not go on for ever in a program with many call sites."""
        result = self.run_program(PROGRAMS / "many_sites", SIM_MEMORY="1GiB", SPILL="off",
                                  POLICY=self.write(("a", {}, {"log": True})),
                                  allow=["rule a matches on device 0: first 1 MiB at native:",
                                         "no further call sites are logged", "out of memory"])
        self.assertEqual(len([line for line in result.said() if "matches" in line]), 100)
        self.assertEqual(len([line for line in result.said() if "no further" in line]), 1)
        self.check(result, "a", matched=128)

    def test_summary(self):
        _, result = self.run_rules([("a", ALPHA, {}), ("b", {"thread": "nobody"}, {})], "alpha:2",
                                   SUMMARY="on", allow=["device 0", "policies"])
        self.assertIn("spillway: device 0: rule a decided on 1 allocation, peak 2 MiB, host peak "
                      "0 B\n", result.stderr)
        self.assertIn("spillway: device 0: rules that decided on no allocation: b\n", result.stderr)

    def test_without_sites_rules_do_not_match(self):
        _, result = self.run_rules(
            [("a", ALPHA, {}), ("rest", {}, {})], "alpha:2", SITES="off",
            allow=[r"rules match on native frames, but SPILLWAY_SITES is off"])
        self.check(result, "rest", matched=1)
        _, result = self.run_rules([("rest", {}, {})], "alpha:2", SITES="off")  # and no message
        self.check(result, "rest", matched=1)

    def test_sites_that_rules_need(self):
        """There is a message where they are not recorded, and none where they are."""
        python = {"python": {"function": "forward"}}
        for match, sites, missing in ((ALPHA, "native", ""), (ALPHA, "both", ""),
                                      (ALPHA, "python", "native frames"), (python, "python", ""),
                                      (python, "both", ""), (python, "native", "Python frames")):
            with self.subTest(match, sites=sites):
                said = f"rules match on {missing}, but SPILLWAY_SITES is {sites}"
                _, result = self.run_rules([("a", match, {})], "alpha:2", SITES=sites,
                                           allow=[said] if missing else [])
                self.assertEqual(said in result.stderr, missing != "")


class Loading(Policies):
    def test_bad_file(self):
        path = self.folder / "bad.json"
        path.write_text('{"version": 1,\n "rulez": []}')
        line = (r'bad\.json:2:2: "rulez" is not a key of the policy, expected .* \(did you mean '
                r'"rules"\?\); the default policy is used '
                r'\(run spillway policy check .*bad\.json\)$')
        _, result = self.run_rules([], "alpha:2", "thread:2", POLICY=path, allow=[line])
        self.assertEqual(len(result.said()), 1, result.stderr)
        self.assertNotIn("rules", result.stats)

    def test_missing_file(self):
        self.run_rules([], "alpha:2", POLICY="nowhere", allow=[r"nowhere:1:1: it cannot be opened"])

    def test_pipe(self):
        """Each process would read the rest of it: nothing, or for ever."""
        path = self.folder / "pipe.json"
        os.mkfifo(path)
        said = (f"{path}:1:1: it is a pipe or a device, but every process of the run reads it, "
                "expected a file")
        for command in ("sim", "run"):
            result = self.run_command([harness.COMMAND, command, "--policy", path, "--", "true"],
                                      harness.environment(False, False))
            self.assertEqual((result.status, result.stderr),
                             (2, f"spillway: {command}: {said}\n"))
        line = f"^spillway: {path}: it is a pipe or a device, expected a file; the default policy"
        _, result = self.run_rules([], "alpha:2", POLICY=path, allow=[line])
        self.assertEqual(len(result.said()), 1, result.stderr)

    def test_mistyped_name(self):
        line = (r'^spillway: optimzer-to-host:1:1: it cannot be opened .*, expected a JSON file or '
                r'a shipped policy \(did you mean "optimizer-to-host"\?\); the default policy')
        _, result = self.run_rules([], "alpha:2", POLICY="optimzer-to-host", allow=[line])
        self.assertEqual(len(result.said()), 1, result.stderr)

    def test_shipped_by_name(self):
        _, result = self.run_rules([], "alpha:2", POLICY="observe")
        self.check(result, "observe", matched=1, live_bytes=2 * MIB)

    def test_observe_mode(self):
        self.run_rules([("a", ALPHA, {})], "alpha:2", MODE="observe",
                       allow=["SPILLWAY_POLICY has no effect in mode observe", "^spillway: mode"])

    @unittest.skipIf(harness.SANITIZED, "a program without the sanitizer cannot load it")
    def test_not_loaded_without_cuda(self):
        result = self.run_command(["true"], harness.environment(POLICY="nowhere"))
        self.assertEqual((result.status, result.stderr), (0, ""))


class Limits(Policies):
    def test_fail(self):
        rules = [("a", ALPHA, {"limit": {"max": "10MiB", "then": "fail"}})]
        lines, result = self.run_rules(
            rules, "alpha:6", "alpha:4", "beta:20", "alpha:1", "free:1", "alpha:4",
            allow=[r"rule a exceeds its limit of 10 MiB on device 0: it holds 10 MiB, and 1 MiB "
                   r"more are refused", r"out of memory on device 0: requested 1 MiB"])
        self.assertEqual([code for _, code, _ in lines], [0, 0, 0, 2, 0, 0])
        self.check(result, "a", matched=3, refused=1, live_bytes=10 * MIB)

    def test_warn(self):
        rules = [("a", ALPHA, {"limit": {"max": "1%", "then": "warn"}})]
        lines, result = self.run_rules(
            rules, "alpha:6", "alpha:6", "alpha:6",
            allow=[r"rule a exceeds its limit of 10\.24 MiB on device 0: it holds 6 MiB, and 6 MiB "
                   r"more are requested"])
        self.assertEqual([code for _, code, _ in lines], [0, 0, 0])
        self.assertEqual(len(result.said()), 1)
        self.check(result, "a", matched=3, refused=0, live_bytes=18 * MIB)


class Placement(Policies):
    def test_host(self):
        """Exactly the rule's blocks are on the host, rounded up to granules together, and the
        device has as much room as before."""
        lines, result = self.run_rules([("a", ALPHA, {"placement": "host"})],
                                       "beta:10", "alpha:3", "alpha:6", "gamma:1", "alpha:1")
        self.assertEqual([(code, free) for _, code, free in lines],
                         [(0, 1014), (0, 1014), (0, 1014), (0, 1013), (0, 1013)])
        self.check(result, "a", matched=3, live_bytes=10 * MIB, host_bytes=10 * MIB, unmet=0)
        device = result.device()
        self.assertEqual((device["host_bytes"], device["host_used_bytes"]), (10 * MIB, 10 * MIB))
        self.assertEqual((device["spilled_bytes"], device["committed_bytes"]), (0, 12 * MIB))

    def test_host_memory_is_used_again(self):
        words = ["alpha:8", "free:0", "alpha:8", "free:1", "alpha:4", "work:2", "rest"]
        lines, result = self.run_rules([("a", ALPHA, {"placement": "host"})], *words)
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.check(result, "a", live_bytes=4 * MIB, host_peak_bytes=8 * MIB, unmet=0)
        self.assertEqual(result.device()["host_peak_bytes"], 8 * MIB)

    def test_host_stays_there(self):
        """Room on the device brings back what was spilled, not what a rule placed."""
        words = ["alpha:8", "work:0", "rest", "beta:8", "rest", "rest"]
        _, result = self.run_rules([("a", ALPHA, {"placement": "host"})], *words)
        self.assertEqual(result.device()["promoted_bytes"], 0)
        self.assertEqual(result.device()["host_used_bytes"], 8 * MIB)

    def test_host_has_no_room(self):
        lines, result = self.run_rules(
            [("a", ALPHA, {"placement": "host"})], "alpha:8", "alpha:6", "alpha:2", "free:0",
            "alpha:8", HOST_LIMIT="10MiB",
            allow=[r"rule a cannot be applied on device 0: the host has no (more )?room for it; "
                   r"its blocks are placed without it"])
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.check(result, "a", matched=4, live_bytes=16 * MIB, host_bytes=10 * MIB, unmet=1)

    def test_without_spill(self):
        lines, result = self.run_rules(
            [("a", ALPHA, {"placement": "host"})], "alpha:8", "alpha:8", SPILL="off",
            allow=["rule a cannot be applied on device 0: spilling to the host is not possible"])
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.assertEqual(len(result.said()), 1)
        self.check(result, "a", live_bytes=16 * MIB, host_bytes=0, unmet=2)

    def test_where_the_host_has_no_chunks(self):
        """Page-locked memory takes whole blocks; a share of one cannot be had."""
        pinned = ["cannot map host memory as its own"]
        lines, result = self.run_rules([("a", ALPHA, {"placement": "host"})], "alpha:8", "alpha:8",
                                       SIM_HOST_NUMA="off", allow=pinned)
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.check(result, "a", live_bytes=16 * MIB, host_bytes=16 * MIB, unmet=0)
        self.assertEqual(result.device()["committed_bytes"], 0)
        _, result = self.run_rules([("a", ALPHA, {"host_share": "50%"})], "alpha:8",
                                   SIM_HOST_NUMA="off",
                                   allow=[*pinned, "rule a cannot be applied"])
        self.check(result, "a", live_bytes=8 * MIB, host_bytes=0, unmet=1)

    def test_share_on_a_full_device(self):
        """The driver has no more memory, below the limit: at least the share is on the host."""
        _, result = self.run_rules([("a", ALPHA, {"host_share": "50%"})], *["beta:64"] * 8,
                                   "alpha:32", SIM_OVERHEAD="on", allow=["device 0 is full"])
        self.check(result, "a", live_bytes=32 * MIB, unmet=0)
        self.assertGreaterEqual(self.rule(result, "a")["host_bytes"], 16 * MIB)

    def test_device(self):
        """Others make room; where nothing does, the block is where it can be."""
        full = [r"device 0 is full", r"rule b cannot be applied on device 0: the device has no "
                r"more room for it"]
        words = ["alpha:16"] * 2 + ["beta:16"] * 2
        _, result = self.run_rules([("b", BETA, {"placement": "device"})], *words,
                                   "beta:16", SIM_MEMORY="64MiB", allow=full)
        self.check(result, "b", matched=3, live_bytes=48 * MIB, host_bytes=0, unmet=0)
        lines, result = self.run_rules([("b", BETA, {"placement": "device"})], *["beta:16"] * 5,
                                       SIM_MEMORY="64MiB", allow=full)
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.check(result, "b", matched=5, unmet=1)

    def test_movable(self):
        """What may not move stays, however old, and the rest goes."""
        words = ["alpha:16"] * 2 + ["beta:16"] * 2 + ["gamma:16384"] * 2
        lines, result = self.run_rules(
            [("a", ALPHA, {"movable": False}), ("b", BETA, {"movable": False})], *words,
            SIM_MEMORY="64MiB", allow=[r"device 0 is full: .* of it are on the host"])
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.assertEqual(result.device()["moves"], 0)
        self.assertEqual(result.device()["placed_bytes"], 32 * MIB)

    def test_limit_then_spill(self):
        lines, result = self.run_rules(
            [("cap", {}, {"limit": {"max": "5%", "then": "spill"}})],
            "alpha:40", "beta:8", "alpha:16", "free:0", "alpha:40", "beta:8")
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.check(result, "cap", live_bytes=72 * MIB, host_bytes=24 * MIB, unmet=0, refused=0)

    def test_limit_then_spill_of_blocks_for_the_device(self):
        """Beyond the limit they may be on the host after all."""
        lines, result = self.run_rules(
            [("cap", {}, {"placement": "device", "limit": {"max": "8MiB", "then": "spill"}})],
            "alpha:8", "alpha:4", "beta:2")
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.check(result, "cap", live_bytes=14 * MIB, host_bytes=6 * MIB, unmet=0, refused=0)

    def test_host_without_room(self):
        lines, result = self.run_rules([("host", {}, {"placement": "host"})], "alpha:8",
                                       HOST_LIMIT="0",
                                       allow=["rule host cannot be applied on device 0"])
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.check(result, "host", live_bytes=8 * MIB, host_bytes=0, unmet=1)

    def test_chunks_of_the_program(self):
        rules = [("own", {"api": "cuMemCreate", "size": {"max": "4MiB"}}, {"placement": "host"}),
                 ("cap", {"api": "cuMemCreate"}, {"limit": {"max": "10MiB", "then": "fail"}})]
        lines, result = self.run_rules(
            rules, "chunk:4", "chunk:6", "chunk:6", "chunk:2", "alpha:2",
            allow=["rule cap exceeds its limit of 10 MiB", "out of memory"])
        self.assertEqual([code for _, code, _ in lines], [0, 0, 2, 0, 0])
        self.check(result, "own", matched=2, live_bytes=6 * MIB, host_bytes=6 * MIB, unmet=0)
        self.check(result, "cap", matched=1, refused=1, live_bytes=6 * MIB, host_bytes=0)
        device = result.device()
        self.assertEqual((device["vmm_bytes"], device["vmm_host_bytes"]), (6 * MIB, 6 * MIB))
        self.assertEqual((device["spilled_bytes"], device["placed_bytes"]), (0, 0))

    def test_chunks_are_neither_split_nor_lazy(self):
        for action in ({"host_share": "50%"}, {"commit": "lazy"}):
            with self.subTest(action):
                _, result = self.run_rules(
                    [("own", {"api": "cuMemCreate"}, action)], "chunk:4", "chunk:6",
                    allow=["rule own cannot be applied on device 0: memory from cuMemCreate"])
                self.check(result, "own", matched=2, live_bytes=10 * MIB, host_bytes=0, unmet=2)
                self.assertEqual(result.device()["vmm_bytes"], 10 * MIB)

    def test_chunks_the_device_has_no_room_for(self):
        lines, result = self.run_rules(
            [("own", {"api": "cuMemCreate"}, {"placement": "device"})], "chunk:4", "chunk:4",
            LIMIT="6MiB", allow=["rule own cannot be applied on device 0: the device has no more",
                                 "out of memory"])
        self.assertEqual([code for _, code, _ in lines], [0, 2])
        self.check(result, "own", matched=2, live_bytes=4 * MIB, unmet=1)

    def test_chunks_that_end(self):
        """Whatever the program does with them, the tally of their rule is empty in the end."""
        policy = self.write(("own", {"api": "cuMemCreate"}, {"priority": 1}))
        for options in ({}, {"MODE": "observe", "allow": ["mode observe"]},
                        {"SIM_FAIL": "cuMemGetAllocationGranularity:1+:304",
                         "allow": ["no pool"]}):
            with self.subTest(options):
                result = self.run_both(PROGRAMS / "own_memory", POLICY=policy, **options)
                self.check(result, "own", matched=0 if options else 5, live_bytes=0)

    def test_questions_about_chunks_on_the_host(self):
        """The program asked for device memory, and is told so."""
        policy = self.write(("own", {"api": "cuMemCreate"}, {"placement": "host"}))
        result = self.run_both(PROGRAMS / "vmm", SIM_DEVICES=2, POLICY=policy)
        self.assertEqual(result.device()["host_peak_bytes"], 32 * MIB)

    def test_chunks_the_host_has_no_room_for(self):
        """They are on the device after all, past the limit too, and counted once."""
        rules = [("own", {"api": "cuMemCreate"}, {"limit": {"max": "4MiB", "then": "spill"}})]
        _, result = self.run_rules(
            rules, "chunk:4", "chunk:6", "chunk:6", HOST_LIMIT="6MiB",
            allow=["rule own cannot be applied on device 0: the host has no room"])
        self.check(result, "own", matched=3, live_bytes=16 * MIB, host_bytes=6 * MIB, unmet=1)


class Shares(Policies):
    def test_share(self):
        """Three quarters of the granules of each block, and the blocks can be used and freed."""
        words = ["alpha:16", "alpha:3", "gamma:512", "work:0", "work:1", "rest"]
        _, result = self.run_rules([("w", {}, {"host_share": "75%"})], *words)
        # 16 MiB: 6 of 8 granules; 3 MiB: 1 of 2; 0.5 MiB: none of one.
        self.assertEqual(result.device()["host_used_bytes"], 14 * MIB)
        self.check(result, "w", unmet=0, live_bytes=19 * MIB + 512 * KIB)
        _, result = self.run_rules([("w", {}, {"host_share": "75%"})], *words, "free:0", "free:1",
                                   "rest", "alpha:16", "rest")
        self.assertEqual(result.device()["host_used_bytes"], 12 * MIB)
        self.check(result, "w", unmet=0, host_bytes=12 * MIB, live_bytes=16 * MIB + 512 * KIB)

    def test_share_on_a_full_device(self):
        """The device's part of the second block has no room either: the whole block spills."""
        lines, result = self.run_rules([("w", {}, {"host_share": "50%"})], "alpha:16", "alpha:16",
                                       "work:1", "rest", LIMIT="12MiB", allow=["is full"])
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.assertLessEqual(result.device()["committed_peak_bytes"], 12 * MIB)
        self.check(result, "w", matched=2, live_bytes=32 * MIB)

    def test_all_and_nothing(self):
        for share, host in (("100%", 6), ("0%", 0)):
            _, result = self.run_rules([("w", {}, {"host_share": share})], "alpha:3", "beta:3")
            self.check(result, "w", host_bytes=host * MIB, unmet=0)
            self.assertEqual(result.device()["host_used_bytes"], host * MIB)


class Regions(Policies):
    def test_apart(self):
        """Blocks of a region lie in a range of their own, and leave no holes between others."""
        rules = [("one", ALPHA, {"region": "one"}), ("two", BETA, {"region": "two"})]
        words = ["alpha:4", "beta:4", "gamma:4096"] * 4 + ["rest"]
        lines, result = self.run_rules(rules, *words)
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.check(result, "one", live_bytes=16 * MIB, unmet=0)

    def test_together(self):
        """Rules that name one region share it: two small blocks fit into one granule. Regions that
        are named more than once count once."""
        for other, granules in (("one", 1), ("two", 2)):
            rules = [("a", ALPHA, {"region": "one"}), ("b", BETA, {"region": other}),
                     *[(f"r{i}", {"thread": "nobody"}, {"region": "one"}) for i in range(9)]]
            _, result = self.run_rules(rules, "alpha:1", "beta:1")
            self.assertEqual(result.device()["committed_bytes"], granules * 2 * MIB, other)

    def test_spilled_too(self):
        rules = [("one", ALPHA, {"region": "one"})]
        lines, result = self.run_rules(rules, *["alpha:16"] * 6, "work:0", "work:5", "rest",
                                       SIM_MEMORY="64MiB", allow=["device 0 is full"])
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.assertEqual(result.device()["live_bytes"], 96 * MIB)

    def test_too_many(self):
        rules = [(f"r{i}", {"size": {"max": f"{i + 1}MiB"}}, {"region": f"region{i}"})
                 for i in range(9)]
        self.run_rules(rules, "alpha:1", "alpha:9",
                       allow=["more than 8 regions; that of rule r8 has no effect"])


class Lazy(Policies):
    rules = [("big", {"size": {"min": "4MiB"}}, {"commit": "lazy"})]

    def test_costs_nothing_until_work(self):
        """Freed before any work it never had memory; with work, every block that is there has."""
        _, result = self.run_rules(self.rules, "alpha:800", "free:0", "beta:900", "free:1", "rest")
        self.assertEqual(result.device()["committed_peak_bytes"], 0)
        self.check(result, "big", matched=2, live_bytes=0, live_peak_bytes=900 * MIB, unmet=0)
        lines, result = self.run_rules(self.rules, "alpha:5", "alpha:16", "gamma:1", "work:2")
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.assertEqual(result.device()["committed_peak_bytes"], (6 + 16 + 2) * MIB)
        self.assertEqual(result.device()["live_bytes"], 21 * MIB + KIB)

    def test_questions(self):
        """A block without memory is known like any other."""
        lines, _ = self.run_rules(self.rules, "alpha:5", "ask:0", "work:0", "ask:0", "rest")
        self.assertEqual({code for _, code, _ in lines}, {0})

    def test_work_on_it(self):
        lines, result = self.run_rules(
            self.rules, "alpha:5", "work:0", "alpha:7", "free:0", "alpha:9", "work:1", "work:2",
            "rest", "free:1", "free:2", "rest", "alpha:33", "work:3")
        self.assertEqual({code for _, code, _ in lines}, {0})
        self.assertEqual(result.device()["live_bytes"], 33 * MIB)

    def test_on_the_host(self):
        """A block that a rule, or its limit, puts on the host has its memory at once."""
        for action in {"placement": "host"}, {"limit": {"max": "1MiB", "then": "spill"}}:
            with self.subTest(action):
                rules = [("big", {"size": {"min": "4MiB"}}, {"commit": "lazy", **action})]
                lines, result = self.run_rules(rules, "alpha:5", "work:0", "rest")
                self.assertEqual({code for _, code, _ in lines}, {0})
                self.assertEqual(result.device()["host_used_bytes"], 6 * MIB)

    def test_rest_of_the_last_granule(self):
        """Is free for others when the block has its memory."""
        _, result = self.run_rules(self.rules, "alpha:5", "work:0", "rest", "beta:1", "work:1")
        self.assertEqual(result.device()["committed_bytes"], 6 * MIB)

    def test_more_than_there_is(self):
        """Too much for the device, but not at the same time; then with the host; then refused."""
        lines, result = self.run_rules(self.rules, "alpha:800", "alpha:800", "free:0", "work:1",
                                       SPILL="off")
        self.assertEqual([code for _, code, _ in lines], [0, 0, 0, 0])
        self.assertEqual(result.device()["committed_peak_bytes"], 800 * MIB)
        full = ["device 0 is full"]
        lines, result = self.run_rules(self.rules, "alpha:800", "alpha:800", "work:1", "work:0",
                                       allow=full)
        self.assertEqual([code for _, code, _ in lines], [0, 0, 0, 0])
        self.assertEqual(result.device()["host_used_bytes"], 576 * MIB)
        lines, result = self.run_rules(
            self.rules, "alpha:800", "alpha:800", "work:1", "free:0", "work:1", SPILL="off",
            allow=["out of memory on device 0", "^spillway:   "])
        self.assertEqual([code for _, code, _ in lines], [0, 0, 2, 0, 0])
        self.assertEqual(result.device()["ooms"], 1)
        lines, _ = self.run_rules(self.rules, "alpha:2000", SPILL="off",
                                  allow=["out of memory on device 0", "^spillway:   "])
        self.assertEqual([code for _, code, _ in lines], [2])

    def test_never_used(self):
        _, result = self.run_rules(self.rules, "alpha:100", "gamma:1", SUMMARY="on", allow=["."])
        self.assertEqual(result.device()["live_bytes"], 100 * MIB + KIB)
        self.assertEqual(result.device()["committed_bytes"], 2 * MIB)

    def test_free_memory_is_what_may_still_be_had(self):
        lines, _ = self.run_rules(self.rules, "alpha:100", "work:0", "free:0", "rest", "alpha:100")
        self.assertEqual([free for _, _, free in lines], [924, 924, 1024, 1024, 924])


if __name__ == "__main__":
    harness.main()
