#!/usr/bin/env python3
"""Policies in force: what becomes of the blocks that a rule decides on, to the byte."""
import json

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

    def test_log_says_each_site_once(self):
        allow = [r"policy: rule a decides on device 0: first 2 MiB at native:.*policies:alpha;"]
        _, result = self.run_rules([("a", ALPHA, {"log": True})], "alpha:2", "alpha:2", "beta:2",
                                   allow=allow)
        self.assertEqual(len(result.said()), 1, result.stderr)

    def test_summary(self):
        _, result = self.run_rules([("a", ALPHA, {}), ("b", {"thread": "nobody"}, {})], "alpha:2",
                                   SUMMARY="on", allow=["device 0", "policies"])
        self.assertIn("spillway: device 0: rule a decided on 1 allocations, 2 MiB at the peak, on "
                      "the host 0 B\n", result.stderr)
        self.assertIn("spillway: device 0: rules that decided on nothing: b\n", result.stderr)

    def test_without_sites_rules_do_not_match(self):
        _, result = self.run_rules(
            [("a", ALPHA, {}), ("rest", {}, {})], "alpha:2", SITES="off",
            allow=[r"rules match on native frames, but SPILLWAY_SITES is off"])
        self.check(result, "rest", matched=1)


class Loading(Policies):
    def test_bad_file(self):
        path = self.folder / "bad.json"
        path.write_text('{"version": 1,\n "rulez": []}')
        line = (r'bad\.json:2:2: "rulez" is not a key of the policy, expected .* \(did you mean '
                r'"rules"\?\); the default policy is used$')
        _, result = self.run_rules([], "alpha:2", "thread:2", POLICY=path, allow=[line])
        self.assertEqual(len(result.said()), 1, result.stderr)
        self.assertNotIn("rules", result.stats)

    def test_missing_file(self):
        self.run_rules([], "alpha:2", POLICY="nowhere", allow=[r"nowhere:1:1: it cannot be opened"])

    def test_shipped_by_name(self):
        _, result = self.run_rules([], "alpha:2", POLICY="observe")
        self.check(result, "observe", matched=1, live_bytes=2 * MIB)

    def test_observe_mode(self):
        self.run_rules([("a", ALPHA, {})], "alpha:2", MODE="observe",
                       allow=["SPILLWAY_POLICY has no effect in mode observe", "^spillway: mode"])

    def test_not_loaded_without_cuda(self):
        result = self.run_command(["true"], harness.environment(POLICY="nowhere"))
        self.assertEqual((result.status, result.stderr), (0, ""))


class Limits(Policies):
    def test_fail(self):
        rules = [("a", ALPHA, {"limit": {"max": "10MiB", "then": "fail"}})]
        lines, result = self.run_rules(
            rules, "alpha:6", "alpha:4", "beta:20", "alpha:1", "free:1", "alpha:4",
            allow=[r"rule a passes its limit of 10 MiB on device 0: it holds 10 MiB, and 1 MiB "
                   r"more are refused", r"out of memory on device 0: asked for 1 MiB"])
        self.assertEqual([code for _, code, _ in lines], [0, 0, 0, 2, 0, 0])
        self.check(result, "a", matched=3, refused=1, live_bytes=10 * MIB)

    def test_warn(self):
        rules = [("a", ALPHA, {"limit": {"max": "1%", "then": "warn"}})]
        lines, result = self.run_rules(
            rules, "alpha:6", "alpha:6", "alpha:6",
            allow=[r"rule a passes its limit of 10\.24 MiB on device 0: it holds 6 MiB, and 6 MiB "
                   r"more are asked for"])
        self.assertEqual([code for _, code, _ in lines], [0, 0, 0])
        self.assertEqual(len(result.said()), 1)
        self.check(result, "a", matched=3, refused=0, live_bytes=18 * MIB)


if __name__ == "__main__":
    harness.main()
