#!/usr/bin/env python3
"""What is told when memory has run out: who asked, who holds it, and the rule that would help."""
import json

import harness
from harness import COMMAND, MIB, PROGRAMS, SIM

PROGRAM = PROGRAMS / "sites"
OOM = "out of memory on device 0"
# Told where NVML is: its shim is built where its header was found.
BESIDE = ["outside the pool: 0 B of this process (context, code, libraries), 0 B of other processes"
          ] if (SIM / "libnvidia-ml.so.1").exists() else []


class Report(harness.Case):
    def fill(self, *words, **options):
        options = {"SIM_MEMORY": "1GiB", "SPILL": "off", **options}
        return self.run_program(PROGRAM, *words, "fill", allow=[OOM, "is full", "mode observe"],
                                **options)

    def check_rule(self, rule, stats):
        """The rule is good, and decides on the site that holds most."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps({"version": 1, "rules": [rule]}))
        clean = harness.environment(False, False)
        checked = self.run_command([COMMAND, "policy", "check", policy], clean)
        self.assertEqual((checked.status, checked.stderr), (0, ""))
        path = self.folder / "again.json"
        path.write_text(json.dumps(stats))
        shown = self.run_command([COMMAND, "sites", path, "--json"], clean)
        site = json.loads(shown.stdout)["devices"][0]["at_exit"][0]
        explained = self.run_command(
            [COMMAND, "policy", "explain", policy, "--site", site["site"]], clean)
        self.assertEqual(explained.status, 0, explained.stderr)
        self.assertIn(rule["name"], explained.stdout)
        self.assertNotIn("no rule", explained.stdout)

    def test_in_full(self):
        """Once; the second refusal of the same site is one line."""
        result = self.fill("take")
        oom = result.stats["oom"]
        self.assertEqual(len(result.said()), 2, result.stderr)
        self.assertEqual(result.reports(), [[
            "requested by fill in sites (cuMemAlloc)",
            "device: 56 MiB of 1 GiB free",
            "pool: 0 B unused, largest free range 0 B, fragmentation 0 %",
            *BESIDE,
            "host: 64 GiB of 64 GiB available",
            "held by 3 call sites:",
            "     960 MiB in     15 blocks  fill in sites",
            "       5 MiB in      1 block   sites",
            "       3 MiB in      1 block   take_exported in sites",
            "this policy rule would have placed 960 MiB on the host with SPILLWAY_SPILL=auto:",
            json.dumps(oom["rule"])]])
        figures = {"device": 0, "bytes": 64 * MIB, "missing_bytes": 8 * MIB, "api": "cuMemAlloc",
                   "label": "fill in sites", "total_bytes": 1024 * MIB, "free_bytes": 56 * MIB,
                   "limit_bytes": 1024 * MIB, "live_bytes": 968 * MIB,
                   "committed_bytes": 968 * MIB, "spare_bytes": 0, "largest_free_bytes": 0,
                   "host_bytes": 0, "context_bytes": 0 if BESIDE else None,
                   "other_process_bytes": 0 if BESIDE else None,
                   "holding_sites": 3, "rule_bytes": 960 * MIB}
        self.assertEqual({key: oom[key] for key in figures}, figures)
        self.assertEqual([(site["bytes"], site["blocks"]) for site in oom["sites"]],
                         [(960 * MIB, 15), (5 * MIB, 1), (3 * MIB, 1)])
        by_id = {site["id"]: site for site in result.stats["sites"]}
        for site in oom["sites"]:
            self.assertEqual(by_id[site["id"]]["live_bytes"], site["bytes"])
        self.assertEqual(oom["site"], oom["sites"][0]["id"])
        self.check_rule(oom["rule"], result.stats)

    def suggest(self, stats, *arguments):
        """Exit code, policy and line of `policy suggest`."""
        path = self.folder / "stats.json"
        path.write_text(json.dumps(stats))
        done = self.run_command([COMMAND, "policy", "suggest", path, *arguments],
                                harness.environment(False, False))
        policy = json.loads(done.stdout) if done.stdout else None
        return done.status, policy, done.stderr

    def test_suggestion_as_a_file(self):
        """It passes the check, frees what was missing, and no more than it must."""
        stats = self.fill("take").stats
        for arguments, count in ((), 1), (("--free", "4MiB"), 1), (("--free", "963MiB"), 2):
            status, policy, stderr = self.suggest(stats, *arguments)
            self.assertEqual((status, stderr), (0, ""))
            self.assertEqual(len(policy["rules"]), count)
            path = self.folder / "my.json"
            path.write_text(json.dumps(policy))
            checked = self.run_command([COMMAND, "policy", "check", path],
                                       harness.environment(False, False))
            self.assertEqual((checked.status, checked.stderr), (0, ""))
        self.assertEqual(self.suggest(stats)[1]["rules"][0]["match"], stats["oom"]["rule"]["match"])
        status, policy, stderr = self.suggest(stats, "--free", "2GiB")
        self.assertEqual(status, 1)
        self.assertRegex(stderr, r"^spillway: policy: suggest: all rules together free [^\n]*\n$")
        self.assertIn("expected a size", self.suggest(stats, "--free", "10%")[2])
        stats["oom"] = None
        status, policy, stderr = self.suggest(stats)
        self.assertEqual((status, policy), (1, None))
        self.assertRegex(stderr, r"did not run out of memory, and nothing was spilled \(expected "
                                 r"--free SIZE\)\n$")

    def test_suggestion_for_what_was_spilled(self):
        """Without an error, what is to free is the most that spilling had on the host; of device 1
        here, and not what rules placed there."""
        stats = self.fill("take").stats
        stats["oom"], (device,) = None, stats["devices"]
        stats["devices"] = [{**device, "host_peak_bytes": 9 * MIB, "placed_bytes": 9 * MIB},
                            {**device, "ordinal": 1, "host_peak_bytes": 40 * MIB,
                             "spilled_bytes": 90 * MIB, "paused_bytes": 20 * MIB}]
        for site in stats["sites"]:
            site["device"] = 1
        status, policy, stderr = self.suggest(stats)
        self.assertEqual((status, stderr), (0, ""))
        self.assertIn("to free 40 MiB of device 1 at its peak", policy["comment"])

    def test_what_rules_would_get(self):
        """Bytes by rule, without a run; a condition on the size can only be possible."""
        stats = self.fill("take").stats
        rules = [{"name": "large", "match": {"size": {"min": "16MiB"},
                                             "native": {"symbol": "fill"}},
                  "action": {"placement": "host"}},
                 {"name": "taken", "match": {"native": {"symbol": "take_exported"}},
                  "action": {"placement": "host"}}]
        policy, path = self.folder / "my.json", self.folder / "stats.json"
        policy.write_text(json.dumps({"version": 1, "rules": rules}))
        path.write_text(json.dumps(stats))
        clean = harness.environment(False, False)
        shown = self.run_command([COMMAND, "policy", "explain", policy, "--stats", path], clean)
        self.assertEqual((shown.status, shown.stderr), (0, ""))
        self.assertEqual(shown.stdout.splitlines()[2:], [
            "         bytes    share   sites  rule",
            '           0 B    0.0 %       0  1 "large", and up to 960 MiB by size or number',
            '         3 MiB    0.3 %       1  2 "taken"',
            "       965 MiB   99.6 %       2  no rule"])
        for arguments in (["--stats", path, "--site", "thread:main"], ["--free", "1MiB"]):
            done = self.run_command([COMMAND, "policy", "explain", policy, *arguments], clean)
            self.assertEqual((done.status, done.stderr.count("\n")), (2, 1), done.stderr)

    def test_without_room_on_the_host(self):
        """The rule needs more of the host than there may be, and says how much."""
        result = self.fill(SPILL="auto", HOST_LIMIT="128MiB")
        report = result.reports()[0]
        self.assertEqual(report[-2], "this policy rule would have placed 1.13 GiB on the host "
                                     "with SPILLWAY_HOST_LIMIT of 1.25 GiB or more:")
        oom = result.stats["oom"]
        self.assertEqual((oom["host_bytes"], oom["host_limit_bytes"]), (128 * MIB, 128 * MIB))
        self.assertIn("host: 63.88 GiB of 64 GiB available", report)
        spilled = [line for line in result.said() if "is full" in line]
        self.assertEqual(len(spilled), 1)
        self.assertIn("for a block of 64 MiB (fill in sites, cuMemAlloc)", spilled[0])

    def test_where_nothing_may_go_to_the_host(self):
        """It is the limit that must be raised, where that is what forbids it."""
        result = self.fill(SPILL="auto", HOST_LIMIT="0")
        self.assertEqual(result.reports()[0][-2],
                         "this policy rule would have placed 1 GiB on the host with "
                         "SPILLWAY_HOST_LIMIT of 1 GiB or more:")

    def test_on_a_machine_without_room(self):
        """No rule helps that needs more than there is."""
        result = self.fill(SPILL="auto", SIM_HOST_MEMORY="256MiB")
        self.assertNotIn("rule", "\n".join(result.reports()[0]))

    def test_where_nothing_can_be_placed(self):
        result = self.fill(MODE="observe")
        self.assertIsNone(result.stats["oom"]["rule"])
        self.assertNotIn("rule", "\n".join(result.reports()[0]))

    def test_without_sites(self):
        result = self.fill(SITES="off")
        self.assertEqual(result.reports()[0][0], "requested by not known (cuMemAlloc)")
        self.assertEqual(result.stats["oom"]["sites"], [])
        self.assertIsNone(result.stats["oom"]["rule"])

    def test_many_holders(self):
        """Only the largest are told, equal ones in the order of their first allocation; their
        number is that of all."""
        result = self.run_program(PROGRAMS / "many_sites", SIM_MEMORY="1GiB", SPILL="off",
                                  allow=[OOM])
        report = result.reports()[0]
        self.assertIn("held by 128 call sites, the largest:", report)
        self.assertEqual(sum("1 MiB in      1 block" in line for line in report), 10)
        self.assertEqual(result.stats["oom"]["holding_sites"], 128)
        numbers = [site["id"] for site in result.stats["oom"]["sites"]]
        self.assertEqual(numbers, sorted(numbers))

    def test_on_a_machine_with_a_control_group(self):
        """The group has less than the machine: 2 GiB, of which 1 GiB is left."""
        machine = self.folder / "machine"
        for name, text in {"proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n",
                           "proc/self/cgroup": "0::/job\n",
                           "sys/fs/cgroup/job/memory.max": f"{2 << 30}",
                           "sys/fs/cgroup/job/memory.current": f"{1 << 30}"}.items():
            (machine / name).parent.mkdir(parents=True, exist_ok=True)
            (machine / name).write_text(text)
        report = self.fill("take", SIM_ROOT=machine).reports()[0]
        self.assertIn("host: 1 GiB of 2 GiB available", report)
        (machine / "sys/fs/cgroup/job/memory.max").write_text(f"{15 << 30}")
        report = self.fill("take", SIM_ROOT=machine).reports()[0]
        self.assertIn("host: 8 GiB of 15 GiB available", report)

    def fill_beside(self, nvml=None, shim="", **options):
        """The report, with this NVML or none."""
        libraries = self.folder / f"libraries-{next(self.numbers)}"
        libraries.mkdir()
        for name in ("libcuda.so.1", "libcudart.so.13"):
            (libraries / name).symlink_to(SIM / name)
        if nvml is not None:
            (libraries / "libnvidia-ml.so.1").symlink_to(PROGRAMS / nvml)
        stats = libraries / "stats.json"
        env = harness.environment(**{"SIM_MEMORY": "1GiB", "SPILL": "off", "SUMMARY": "off",
                                     "STATS": stats, **options})
        env |= {"LD_LIBRARY_PATH": str(libraries), "NVML_SHIM": shim}
        result = self.run_command([PROGRAM, "take", "fill"], env)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(len(result.reports()), 1)
        oom = json.loads(stats.read_text())["oom"]
        return (oom["context_bytes"], oom["other_process_bytes"]), "\n".join(result.reports()[0])

    def test_without_nvml(self):
        """Nothing is told of other processes then; what is not the pool's is told in one figure."""
        figures, report = self.fill_beside()
        self.assertEqual(figures, (None, None))
        self.assertNotIn("outside the pool", report)
        figures, report = self.fill_beside(SIM_PROFILE="gtx1080-8g", SIM_OVERHEAD="on")
        self.assertEqual(figures, (None, None))
        self.assertRegex(report, r"outside the pool: [\d.]+ MiB of this process \(context, code, "
                                 r"libraries\) and other processes\n")

    def test_with_nvml(self):
        """This process holds 32 MiB beside the pool; others, as far as they are told, 42 MiB."""
        figures, report = self.fill_beside("libnvml_shim.so")
        self.assertEqual(figures, (32 * MIB, 42 * MIB))
        self.assertIn("outside the pool: 32 MiB of this process (context, code, libraries), 42 MiB "
                      "of other processes\n", report)

    def test_with_nvml_that_does_not_tell(self):
        for shim in ("init", "find", "memory", "processes", "untold"):
            with self.subTest(shim):
                figures, report = self.fill_beside("libnvml_shim.so", shim)
                self.assertEqual(figures, (None, None))
                self.assertNotIn("outside the pool", report)
        self.assertEqual(self.fill_beside("libnvml_poor.so")[0], (None, None))
        # It tells of another device than the simulated one.
        self.assertEqual(self.fill_beside("libnvml_shim.so", SIM_MEMORY="1025MiB")[0], (None, None))

    def test_of_a_program_that_asks_again_and_again(self):
        """Of each site's first refusal, of each of 16, and then of ever fewer."""
        result = self.run_program(PROGRAMS / "repeated", allow=[OOM])
        self.assertEqual(result.device()["ooms"], 5500)
        said = [line for line in result.said() if OOM in line]
        self.assertEqual(len(said), 16 + len("32 64 128 256 512 1024 2048 4096".split()) + 1)
        self.assertNotIn("so far", said[15])
        for line, refusals in (said[16], 32), (said[-1], 4096):
            self.assertTrue(line.endswith(f"; {refusals} requests refused so far"), line)
        self.assertEqual(len(result.reports()), 2)

    def test_no_report_without_refusal(self):
        result = self.run_program(PROGRAM, "take")
        self.assertIsNone(result.stats["oom"])


if __name__ == "__main__":
    harness.main()
