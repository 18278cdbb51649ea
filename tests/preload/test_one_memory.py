#!/usr/bin/env python3
"""A GPU without memory of its own, as GB10 and Jetson have: device and host take of one memory, and
the machine dies if they take more than it has. Bare it does; under spillway it does not."""
import json
import re
import signal

import harness
from harness import COMMAND, GIB, MIB, PROGRAMS

PROGRAM = PROGRAMS / "one_memory"
MEMORY, RESERVE, BLOCK = 512, 64, 16
OPTIONS = {"SIM_PROFILE": "gb10", "SIM_MEMORY": f"{MEMORY}MiB", "MEMORY_RESERVE": f"{RESERVE}MiB"}
OOM = "out of memory on device 0"
SPILLED = r"is full|host memory"
KINDS = "device", "own", "pinned", "managed", "foreign", "created"


class OneMemory(harness.Case):
    def fill(self, kind="none", mib=0, **options):
        return self.run_program(PROGRAM, kind, str(mib), allow=[OOM, *options.pop("allow", ())],
                                **{**OPTIONS, **options})

    def taken(self, result, kind):
        """MiB of a kind that the program got before it was refused."""
        return int(re.search(rf"^{kind}: (\d+) MiB, then out of memory$", result.stdout, re.M)[1])

    def free(self, result, when):
        """(free, total) in MiB as the program was told."""
        return tuple(map(int, re.search(rf"^{when}: (\d+) MiB free of (\d+) MiB$", result.stdout,
                                        re.M).groups()))

    def test_bare_the_machine_dies(self):
        for kind in ("none", *KINDS[1:]):
            with self.subTest(kind):
                result = self.run_program(PROGRAM, kind, "800", preload=False,
                                          status=-signal.SIGKILL, SIM_PROFILE="gb10",
                                          SIM_MEMORY="512MiB", allow=["would hang here"])
                self.assertIn("a real machine would hang here: its one memory has 512 MiB, and "
                              "device and host together need 512.", result.stderr)
                self.assertNotIn("after:", result.stdout)

    def test_all_that_is_left_for_the_device(self):
        result = self.fill()
        self.assertEqual(self.free(result, "before")[1], MEMORY - RESERVE)
        most = MEMORY - RESERVE - BLOCK  # the program itself has a little
        self.assertEqual(self.taken(result, "device"), most)
        device = result.device()
        self.assertEqual(device["limit_bytes"], (MEMORY - RESERVE) * MIB)
        self.assertEqual(device["one_memory_bytes"], MEMORY * MIB)

    def test_every_kind_counts(self):
        """What the host's side has, the device cannot have."""
        for kind in KINDS:
            with self.subTest(kind):
                result = self.fill(kind, 96)
                self.assertIn(f"{kind}: 96 MiB, then enough\n", result.stdout)
                got = self.taken(result, "device")
                self.assertEqual(got, MEMORY - RESERVE - BLOCK - 96, result.stdout)
                self.assertLessEqual(self.free(result, "after")[0], BLOCK)

    def test_every_kind_is_refused(self):
        """Of the process's own memory there is nobody to refuse it."""
        for kind in KINDS[2:]:
            with self.subTest(kind):
                result = self.fill(kind, 800)
                self.assertEqual(self.taken(result, kind), MEMORY - RESERVE - BLOCK)
                self.assertEqual(self.taken(result, "device"), 0)
                self.assertIn(f"requested by one_memory", result.reports()[0][0])

    def test_nothing_spills_and_nothing_is_taken_ahead(self):
        device = self.fill().device()
        for name in "host_bytes", "host_peak_bytes", "host_limit_bytes", "spilled_bytes":
            self.assertEqual(device[name], 0, name)
        self.assertNotIn("cuMemHostAlloc", device["driver_calls"])
        for options, more in ({}, False), ({"GROWTH": "15%"}, True):
            device = self.fill("varied", **options).device()
            self.assertEqual(device["committed_peak_bytes"] > device["live_peak_bytes"], more)

    def test_report(self):
        """It names the holders, and no rule or limit of the host, which could not help."""
        result = self.fill("pinned", 32)
        line, = result.said()
        self.assertTrue(line.endswith("; device and host share one memory"), line)
        report = result.reports()[0]
        figure = r"[\d.]+ [KM]iB"
        for expected, found in zip((
                r"requested by one_memory \(cuMemAlloc\)", r"pool: 0 B unused, .*",
                rf"memory: one for device and host, {figure} of 512 MiB may be taken; 64 MiB stay "
                r"free \(SPILLWAY_MEMORY_RESERVE\)",
                rf"of this process: 400 MiB on the device, 32 MiB page-locked, {figure} of its own "
                "memory", "held by 1 call site:", r" +400 MiB in +25 blocks +one_memory"),
                report, strict=True):
            self.assertRegex(found, f"^{expected}$")
        oom = result.stats["oom"]
        self.assertEqual((oom["one_memory"], oom["total_bytes"], oom["reserve_bytes"],
                          oom["pinned_bytes"], oom["rule"]),
                         (True, MEMORY * MIB, RESERVE * MIB, 32 * MIB, None))
        self.assertLess(oom["missing_bytes"], BLOCK * MIB)
        self.assertGreater(oom["missing_bytes"], 0)

    def test_reserve(self):
        """By default at least 512 MiB, but never more than half."""
        for memory, reserve, limit in (("512MiB", None, 256), ("2GiB", None, 1536),
                                       ("16GiB", None, 15360), ("1GiB", "25%", 768),
                                       ("1GiB", "1GiB", 512)):
            with self.subTest(memory, reserve=reserve):
                options = {**OPTIONS, "SIM_MEMORY": memory}
                del options["MEMORY_RESERVE"]
                if reserve is not None:
                    options["MEMORY_RESERVE"] = reserve
                result = self.run_program(PROGRAM, "none", "0", allow=[OOM], **options)
                self.assertEqual(result.device()["limit_bytes"], limit * MIB)

    def test_limit_and_observe(self):
        """A limit of the user counts too, and the driver's own allocations do."""
        result = self.fill(LIMIT="128MiB")
        self.assertEqual(self.taken(result, "device"), 128)
        self.assertEqual(self.free(result, "before")[1], 128)
        result = self.fill(MODE="observe", allow=["mode observe"])
        self.assertEqual(self.taken(result, "device"), MEMORY - RESERVE - BLOCK)

    def machine(self, **files):
        root = self.folder / "machine"
        files = {"proc/meminfo": f"MemTotal: {MEMORY << 10} kB\nMemAvailable: 1 kB\n", **files}
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    def test_control_groups(self):
        """The group leaves 192 MiB and does not see what the driver allocates. An eighth of its
        limit, or the reserve, stays free."""
        for version, files in (
                ("2", {"proc/self/cgroup": "0::/job\n",
                       "sys/fs/cgroup/job/memory.max": f"{256 * MIB}",
                       "sys/fs/cgroup/job/memory.current": f"{64 * MIB}",
                       "sys/fs/cgroup/job/memory.stat": f"anon {64 * MIB}\n"}),
                ("1", {"proc/self/cgroup": "4:memory:/job\n",
                       "sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{256 * MIB}",
                       "sys/fs/cgroup/memory/job/memory.usage_in_bytes": f"{64 * MIB}",
                       "sys/fs/cgroup/memory/job/memory.stat": f"total_rss {64 * MIB}\n"})):
            with self.subTest(version=version):
                self.setUp()
                result = self.fill(SIM_ROOT=self.machine(**files))
                self.assertEqual(self.taken(result, "device"), 256 - 64 - 32)
                self.assertEqual(result.device()["limit_bytes"], 256 * MIB)

    def test_driver_that_does_not_tell(self):
        """cuMemGetInfo fails on some of these machines."""
        for code in "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_NOT_SUPPORTED":
            with self.subTest(code):
                result = self.fill(SIM_FAIL=f"cuMemGetInfo_v2:1+:{code}")
                self.assertEqual(self.taken(result, "device"), MEMORY - RESERVE - BLOCK)

    def test_other_gpus_keep_their_memory(self):
        """GH200 uses the page tables of the host, and has memory of its own; so has a card."""
        for profile, said in (("gh200-96g", "integrated 0, page tables of the host 1"),
                              ("h100-80g", "integrated 0, page tables of the host 0")):
            with self.subTest(profile):
                result = self.fill(SIM_PROFILE=profile, SIM_HOST_MEMORY="512MiB",
                                   allow=[SPILLED])
                self.assertIn(said, result.stdout)
                self.assertEqual(self.free(result, "before"), (MEMORY, MEMORY))
                self.assertEqual(self.taken(result, "device"), MEMORY + 256)
                self.assertEqual(result.device()["one_memory_bytes"], 0)
                self.assertFalse(result.stats["oom"]["one_memory"])

    def test_jetson(self):
        """Integrated, without the page tables of the host."""
        for profile, tables in ("orin", 0), ("thor", 1):
            with self.subTest(profile):
                result = self.fill(SIM_PROFILE=profile)
                self.assertIn(f"integrated 1, page tables of the host {tables}", result.stdout)
                self.assertEqual(self.taken(result, "device"), MEMORY - RESERVE - BLOCK)

    # ---- the command ----

    def sim(self, *words, status=0, kind="none", mib=0):
        path = self.folder / "verdict.json"
        done = self.run_command([COMMAND, "sim", "--profile", "gb10", "--memory", f"{MEMORY}MiB",
                                 "--json", path, *words, "--", PROGRAM, kind, mib],
                                harness.environment(False, False))
        self.assertEqual(done.status, status, done.stderr)
        return done.stderr, json.loads(path.read_text())

    def test_verdict_of_a_machine_that_died(self):
        said, verdict = self.sim("--no-pool", status=128 + signal.SIGKILL)
        self.assertIn("simulated GPU (gb10-128g, 512 MiB, one memory with the host)", said)
        self.assertRegex(said, r"verdict: does not fit in 512 MiB: a real machine would hang, "
                               r"[\d.]+ [KM]iB missing\n")
        self.assertIn("next: without --no-pool, such a request is refused instead\n", said)
        self.assertEqual(verdict["verdict"], "does not fit")
        said, verdict = self.sim("--no-pool", status=128 + signal.SIGKILL, kind="own", mib=800)
        self.assertIn("does not fit", said)  # though the device was not used

    def test_verdict_counts_the_host(self):
        said, verdict = self.sim("--memory-reserve", f"{RESERVE}MiB", kind="own", mib=160)
        self.assertRegex(said, r"peak: 272 MiB live, and 16\d[.\d]* MiB on the host's side")
        self.assertIn("next: a smaller batch: device and host share one memory\n", said)
        self.assertEqual(verdict["verdict"], "continued")
        terms = {term["term"]: term for term in verdict["devices"][0]["card_terms"]}
        self.assertEqual(terms["host"]["basis"], "measured")
        self.assertGreaterEqual(terms["host"]["bytes"], 160 * MIB)
        self.assertLess(terms["host"]["bytes"], 180 * MIB)
        said, _ = self.sim("--memory-reserve", f"{RESERVE}MiB", "--verbose", kind="own", mib=160)
        self.assertIn("for the host's side of the process, as measured here; the system, other "
                      "programs and processes without CUDA are not counted: 64 MiB are kept", said)

    def test_fit(self):
        """8 GiB of the device and 1 GiB of the host: GB10 needs both, a card one of them."""
        path = self.folder / "fit.json"
        done = self.run_command([COMMAND, "fit", "--gpus", "gb10,thor,orin-nx-16g,h100-80g",
                                 "--json", path, "--", PROGRAM, "own", 1024],
                                harness.environment(False, False))
        self.assertEqual(done.status, 0, done.stderr)
        needs = {row["gpu"]: row for row in json.loads(path.read_text())["gpus"]}
        self.assertLess(needs["h100-80g"]["need_bytes"], 9 * GIB)
        for name in "gb10-128g", "thor-128g", "orin-nx-16g":
            self.assertEqual(needs[name]["verdict"], "fits", done.stdout)
            self.assertGreater(needs[name]["need_bytes"], 9 * GIB)
        self.assertRegex(done.stdout, r"orin-nx-16g +15.03 GiB .* fits, 5\.\d+ GiB to spare; "
                                      r"961.75 MiB stay free for the system\n")
        self.assertEqual(done.stdout.count("stay free"), 3)

    def test_doctor(self):
        done = self.run_command([COMMAND, "doctor", "--json"],
                                harness.environment(preload=False, SIM_PROFILE="gb10"))
        rows = json.loads(done.stdout)["spill"]
        self.assertEqual(rows, [{"device": 0, "spills to": "nowhere: device and host share one "
                                 "memory of 121.69 GiB, of which 7.61 GiB stay free "
                                 "(--memory-reserve)", "missing": "nothing"}])

    def test_first_line_of_a_run(self):
        line = ("run: device and host share one memory of 512 MiB: nothing spills, and 64 MiB "
                "stay free (--memory-reserve)")
        for words, said in ((), True), (("--summary", "off"), False):
            done = self.run_command([COMMAND, "run", *words, "--", PROGRAM, "none", 0],
                                    harness.environment(preload=False, **OPTIONS))
            self.assertEqual(line in done.stderr.splitlines()[0], said, done.stderr)


if __name__ == "__main__":
    harness.main()
