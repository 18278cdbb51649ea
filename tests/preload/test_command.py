#!/usr/bin/env python3
"""The command: exit codes, statistics after every way for a program to end, and bad input."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

import harness
from harness import COMMAND, MIB, PROGRAMS

ANNOUNCEMENT = r"simulated GPU"


class Command(harness.Case):
    def sim(self, *words, status=0, allow=(), sim_flags=(), **options):
        """`spillway sim`, with the statistics it leaves."""
        path = self.folder / "stats.json"
        command = [COMMAND, "sim", *sim_flags, "--stats", path, "--summary", "off", "--", *words]
        result = self.run_command(command, harness.environment(False, False, **options))
        self.assertEqual(result.status, status, result.stderr)
        self.check_said(result, [ANNOUNCEMENT, *allow])
        if path.exists():
            result.stats = json.loads(path.read_text())
        return result

    def check_said(self, result, patterns):
        """Every line that spillway writes must be expected; the verdict has tests of its own."""
        for line in result.said():
            if line.startswith(("spillway: verdict: ", "spillway:   ")):
                continue
            self.assertTrue(any(pattern in line for pattern in patterns),
                            f"unexpected: {line}\n{result.stderr}")

    def command(self, *words, **options):
        return self.run_command([COMMAND, *words], harness.environment(False, False, **options))


class ExitCodes(Command):
    def test_statistics_and_exit_code_however_it_ends(self):
        for way, status in (("return", 5), ("exit", 3), ("_exit", 4),
                            ("abort", 128 + signal.SIGABRT), ("kill", 128 + signal.SIGKILL)):
            with self.subTest(way):
                result = self.sim(PROGRAMS / "exits", way, status=status)
                self.assertIsNotNone(result.stats, "no statistics")
                self.assertEqual(result.device()["live_bytes"], 3 * MIB)
                self.assertEqual(result.device()["allocs"], 1)
                os.unlink(self.folder / "stats.json")

    def run_odd(self, *words, path=None, before=None):
        """`spillway sim` of a command, with something odd about the process that starts it."""
        env = harness.environment(False, False)
        if path is not None:
            env["LD_LIBRARY_PATH"] = path
        return subprocess.run([COMMAND, "sim", "--", *words], env=env, capture_output=True,
                              text=True, timeout=60, preexec_fn=before, check=False)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_whoever_starts_it_ignores_children(self):
        done = self.run_odd("sh", "-c", "exit 7",
                            before=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 7, done.stderr)

    @unittest.skipIf(harness.SANITIZED, "grep is not built with the sanitizer")
    def test_the_limit_of_files_is_the_programs(self):
        """The command does not end by SIGXFSZ; the program's own disposition is what it was."""
        bit = 1 << signal.SIGXFSZ - 1
        for disposition, ignored in (signal.SIG_DFL, 0), (signal.SIG_IGN, bit):
            done = subprocess.run(
                [COMMAND, "sim", "--", "grep", "SigIgn", "/proc/self/status"], text=True,
                env=harness.environment(False, False), capture_output=True, timeout=60,
                preexec_fn=lambda: signal.signal(signal.SIGXFSZ, disposition), check=True)
            self.assertEqual(int(done.stdout.split()[1], 16) & bit, ignored)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_an_alarm_from_outside(self):
        done = self.run_odd("sh", "-c", "sleep 0.3; kill -ALRM $PPID; sleep 0.3; exit 6")
        self.assertEqual(done.returncode, 6, done.stderr)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_a_long_library_path(self):
        path = "/a" * 10000 + ":/tmp/end"
        done = self.run_odd("sh", "-c", "echo ${LD_LIBRARY_PATH#*:}", path=path)
        self.assertEqual(done.stdout.strip(), path)

    @unittest.skipIf(harness.SANITIZED, "Python is not built with the sanitizer")
    def test_python_that_calls_os_exit(self):
        script = ("import ctypes, os\n"
                  "cudart = ctypes.CDLL('libcudart.so.13')\n"
                  "block = ctypes.c_void_p()\n"
                  "assert cudart.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(1 << 20)) == 0\n"
                  "os._exit(7)\n")
        result = self.sim(sys.executable, "-c", script, status=7)
        self.assertEqual(result.device()["live_bytes"], MIB)

    def test_preloaded_without_the_command(self):
        for way, status in (("return", 5), ("exit", 3)):
            result = self.run_program(PROGRAMS / "exits", way, status=status)
            self.assertEqual(result.device()["live_bytes"], 3 * MIB)

    def test_driver_that_does_not_start(self):
        result = self.run_command([COMMAND, "run", "--", "true"],
                                  harness.environment(False, SIM_FAIL="cuInit:1+:100"))
        self.assertEqual(result.status, 125, result.stderr)
        self.assertIn("no usable GPU: the CUDA driver does not start (cuInit: "
                      "CUDA_ERROR_NO_DEVICE); ", result.stderr)

    def test_without_pipes(self):
        """Sandboxes may deny them. Nothing is lost."""
        for word in ("sim", "run"):
            for way, status in (("return", 5), ("kill", 128 + signal.SIGKILL)):
                with self.subTest(word=word, way=way):
                    path = self.folder / f"{word}-{way}.json"
                    result = self.run_command(
                        [PROGRAMS / "denied", COMMAND, word, "--summary", "off", "--stats", path,
                         "--", PROGRAMS / "exits", way],
                        harness.environment(False, sim=word == "run"))
                    if result.status == 77:
                        self.skipTest("system calls cannot be filtered here")
                    self.assertEqual(result.status, status, result.stderr)
                    self.check_said(result, [ANNOUNCEMENT])
                    self.assertEqual(json.loads(path.read_text())["devices"][0]["allocs"], 1)
        result = self.run_command([PROGRAMS / "denied", COMMAND, "sim", "--", "no-such-command"],
                                  harness.environment(False, False))
        self.assertEqual(result.status, 127, result.stderr)

    @unittest.skipIf(harness.SANITIZED, "LeakSanitizer needs /proc")
    def test_without_proc(self):
        """Some containers do not mount it. One line says what is lost."""
        hidden = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                  'mount -t tmpfs none /proc && exec "$@"', "sh"]
        probe = self.run_command([*hidden, "true"], harness.environment(False, False))
        if probe.status != 0:
            self.skipTest("/proc cannot be hidden here: " + probe.stderr)
        for way, status in (("return", 5), ("kill", 128 + signal.SIGKILL)):
            with self.subTest(way):
                path = self.folder / f"{way}.json"
                result = self.run_command(
                    [*hidden, COMMAND, "sim", "--summary", "off", "--stats", path, "--",
                     PROGRAMS / "exits", way], harness.environment(False, False))
                self.assertEqual(result.status, status, result.stderr)
                self.check_said(result, [ANNOUNCEMENT, "/proc is not mounted: "])
                self.assertEqual(result.stderr.count("/proc is not mounted"), 1)
                self.assertEqual(json.loads(path.read_text())["devices"][0]["allocs"], 1)
        # The command is found by the path that it was called by, also through PATH.
        result = self.run_command([*hidden, "env", f"PATH={COMMAND.parent}:/usr/bin:/bin",
                                   COMMAND.name, "sim", "--summary", "off", "--",
                                   PROGRAMS / "exits", "return"],
                                  harness.environment(False, False))
        self.assertEqual(result.status, 5, result.stderr)

    def test_not_found(self):
        result = self.sim("no-such-command-here", status=127, allow=["no-such-command-here"])
        self.assertEqual(len(result.said()), 2, result.stderr)
        self.assertNotIn("verdict", result.stderr)

    def test_cannot_be_started(self):
        path = self.folder / "not-executable"
        path.write_text("x")
        self.sim(path, status=125, allow=["not-executable"])

    def test_bad_usage(self):
        for words in (["sim"], ["sim", "--memory", "much", "--", "true"], ["sim", "--no-such-flag"],
                      ["sim", "--memory"], ["sim", "--devices", "-1", "--", "true"],
                      ["sim", "--devices", "1000", "--", "true"],
                      ["sim", "--profile", "h101", "--", "true"],
                      ["sim", "--no-pool", "--limit", "1GiB", "--", "true"],
                      ["run"], ["run", "--memory", "1GiB", "--", "true"],
                      ["no-such-subcommand"], []):
            with self.subTest(words):
                result = self.command(*words)
                self.assertEqual(result.status, 2, result.stderr)
                self.assertEqual(result.stdout, "")
                if words:
                    self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                    self.assertTrue(any(word in result.stderr for word in words), result.stderr)

    def test_help_and_version(self):
        for words in (["--help"], ["sim", "--help"], ["run", "--help"], ["options", "--help"],
                      ["doctor", "--help"], ["--version"]):
            with self.subTest(words):
                result = self.command(*words)
                self.assertEqual(result.status, 0)
                self.assertNotEqual(result.stdout, "")
                self.assertEqual(result.stderr, "")

    def test_help_of_a_command(self):
        self.assertEqual(self.command("help", "sim").stdout, self.command("sim", "--help").stdout)
        self.assertTrue(self.command("help", "help").stdout.startswith("usage: spillway COMMAND"))
        result = self.command("help", "simm")
        self.assertEqual((result.status, result.stdout, result.stderr),
                         (2, "", "spillway: simm is not a command (did you mean sim?)\n"))

    def test_version(self):
        for words in (["version"], ["sim", "--version"]):
            self.assertEqual(self.command(*words).stdout, self.command("--version").stdout)
        result = self.command("version", "foo")
        self.assertEqual((result.status, result.stdout, result.stderr),
                         (2, "", "spillway: version: no arguments are expected "
                          "(see spillway version --help)\n"))

    def test_list_of_policies(self):
        """Those that are installed, with what they are for; none is a failure."""
        policies = {path.stem: json.loads(path.read_text())
                    for path in (harness.SOURCE / "policies").glob("*.json")}
        result = self.command("policy", "list")
        self.assertEqual((result.status, result.stderr), (0, ""))
        listed = re.findall(r"(?m)^\S+$", result.stdout)
        self.assertEqual(listed, sorted(policies.keys() - {"policy.schema"}))
        for name in listed:
            for line in policies[name]["comment"]:
                self.assertIn(f"\n    {line}\n", result.stdout)
        result = self.command("policy", "list", "x")
        self.assertEqual((result.status, result.stdout), (2, ""))
        lone = self.folder / "spillway"
        shutil.copy(COMMAND, lone)
        result = self.run_command([lone, "policy", "list"], harness.environment(False, False))
        self.assertEqual((result.status, result.stdout, result.stderr),
                         (1, "", "spillway: policy: list: no policies are installed\n"))

    def test_completions(self):
        for shell, name in (("bash", "spillway"), ("zsh", "_spillway"), ("fish", "spillway.fish")):
            self.assertEqual(self.command("completion", shell).stdout,
                             (harness.SOURCE / "docs/completions" / name).read_text())
        result = self.command("completion", "csh")
        self.assertEqual((result.status, result.stdout), (2, ""))
        self.assertIn("expected bash, zsh or fish", result.stderr)

    @unittest.skipIf(harness.SANITIZED, "bash is not built with the sanitizer")
    def test_completions_of_bash(self):
        script = self.command("completion", "bash").stdout
        for words, found in ((["pol"], "policy"), (["policy", "l"], "list"),
                             (["completion", "f"], "fish"),
                             (["sim", "--mem"], "--memory --memory-reserve"),
                             (["sim", "--profile", "rtx4090-2"], "rtx4090-24g"),
                             (["run", "--policy", "half"], "half-gpu")):
            text = (f"compopt() {{ :; }}\n{script}\nCOMP_WORDS=(spillway {' '.join(words)}); "
                    f"COMP_CWORD={len(words)}; _spillway; echo \"${{COMPREPLY[@]}}\"")
            result = self.run_command(["bash", "-c", text], harness.environment(False, False))
            self.assertEqual((result.stdout, result.stderr), (found + "\n", ""))

    def test_sections_of_the_manual(self):
        titles = re.findall(r"(?m)^\.SH (.*)", (harness.SOURCE / "docs/spillway.1").read_text())
        self.assertEqual(titles, ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "COMMANDS",
                                  "ENVIRONMENT", "FILES", "EXIT STATUS", "SEE ALSO"])

    def test_full_disk(self):
        """What is not written is an error: a script takes an empty file for the answer."""
        for words in (["--help"], ["--version"], ["options"], ["policy", "schema"],
                      ["sim", "--profile", "list"]):
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([COMMAND, *words], stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=60, check=False)
                self.assertEqual(result.returncode, 1)
                # Of more than a buffer the reason is not known at the end.
                self.assertRegex(result.stderr, rf"^spillway: {words[0]}: cannot write: (No space "
                                 r"left on device|a part of the output is lost)\n$")

    def test_help_in_groups(self):
        """Every option of sim is listed once, with the form of its value."""
        text = self.command("sim", "--help-all").stdout
        titles = re.findall(r"(?m)^(\S.*):$", text)
        self.assertEqual([title.split(" (")[0] for title in titles],
                         ["Pool", "Simulated GPU", "Undocumented driver behaviour"])
        flags = re.findall(r"(?m)^  --([a-z-]+)( \S+)?$", text)
        listed = self.command("options").stdout
        table = set(re.findall(r"\| --([a-z-]+) ", listed))
        switches = {"no-pool", "compare", "open", "verbose"}
        self.assertEqual({name for name, _ in flags}, table | switches | {"report"})
        self.assertEqual({name for name, value in flags if not value}, switches)
        self.assertEqual(len(flags), len(table) + len(switches) + 1)
        self.assertEqual(self.command("options", "--markdown").stdout, listed)

    def test_short_help(self):
        """A dozen options, in the form of the whole list, which is named; 80 columns."""
        for command, few, some in (("run", 12, {"limit", "verbose"}), ("fit", 10, {"gpus", "vary"}),
                                   ("sim", 12, {"memory", "profile", "compare", "policy"})):
            short, full = (self.command(command, flag).stdout for flag in ("--help", "--help-all"))
            listed, all_listed = (re.findall(r"(?m)^  --.*", text) for text in (short, full))
            self.assertLessEqual(len(listed), few, listed)
            self.assertLessEqual(set(listed), set(all_listed))
            self.assertLessEqual(some, {line.split()[0][2:] for line in listed})
            self.assertTrue(short.endswith("\n--help-all lists all options.\n"))
            self.assertLess(len(short.splitlines()), 60)
            self.assertLessEqual(max(map(len, (short + full).splitlines())), 100)
            self.assertEqual(self.command(command, "--help", "--help-all").stdout, full)

    @unittest.skipIf(os.path.exists("/dev/nvidia0"), "this machine has a GPU")
    def test_run_without_a_driver(self):
        result = self.command("run", "--", "true")
        self.assertEqual(result.status, 125)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("spillway sim", result.stderr)

    def test_missing_library(self):
        """A copy of the command without the object and the simulated GPU beside it."""
        lone = self.folder / "bin" / "spillway"
        lone.parent.mkdir()
        lone.write_bytes(COMMAND.read_bytes())
        lone.chmod(0o755)
        result = self.run_command([lone, "sim", "--", "true"], harness.environment(False, False))
        self.assertEqual(result.status, 125)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertRegex(result.stderr, r"libspillway\.so|libcuda\.so")

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_signals_reach_the_program(self):
        script = "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.01; done"
        self.sim("sh", "-c", script, status=9)

    def test_bare_environment(self):
        """--no-pool leaves the environment alone but for the simulated libraries."""
        result = self.command("sim", "--no-pool", "--", "sh", "-c", "echo $LD_PRELOAD")
        self.assertNotIn("libspillway", result.stdout)

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_end_of_a_job(self):
        """Rank 0 says what it needed, and the launcher how far the others differ."""
        fit = PROGRAMS / "fit"
        job = f"RANK=0 {fit} take; RANK=1 {fit} take-ordered; RANK=2 {fit} children"
        for flags, alone in (((), 1), (("--verbose",), 4), (("--summary", "off"), 0)):
            result = self.run_command([COMMAND, "run", *flags, "--", "sh", "-c", job],
                                      harness.environment(False))
            self.assertEqual(result.status, 0, result.stderr)
            said = result.stderr.splitlines()
            self.assertEqual(sum("device 0: peak live " in line for line in said), alone, said)
            if not alone:
                self.assertEqual(said, [])
                continue
            self.assertEqual(said[-1], "spillway: all ranks here: peak live 16 MiB (rank 2) to "
                                       "80 MiB (rank 1)")
        self.assertIn("fit take (pid ", self.run_command(
            [COMMAND, "run", "--", fit, "take"], harness.environment(False)).stderr)


@unittest.skipIf(harness.SANITIZED, "the doctor's children are preloaded without the sanitizer")
class Doctor(Command):
    def doctor(self, *words, status=0, **options):
        result = self.run_command([COMMAND, "doctor", *words],
                                  harness.environment(preload=False, **options))
        self.assertEqual(result.status, status, result.stderr)
        return result

    def test_tables(self):
        """The same tables as JSON and as Markdown; every entry point is served."""
        tables = json.loads(self.doctor("--json").stdout)
        self.assertEqual(list(tables), ["driver", "functions", "devices", "spill", "host_limits",
                                        "entry_points", "disabled"])
        row, = tables["functions"]
        self.assertEqual(row["names"], f"of {row['count']}")  # the simulated driver has them all
        self.assertEqual(len(tables["entry_points"]), 7)
        for row in tables["entry_points"]:
            self.assertEqual(row["result"], "served by the pool", row)
        self.assertEqual(tables["disabled"], [])
        text = self.doctor().stdout
        for row in tables["entry_points"]:
            self.assertIn(f"| {row['entry point']} | {row['result']} |\n", text)
        self.assertIn("\n## What disables spillway, or parts of it\n", text)

    def test_without_a_device(self):
        """What can be told from the driver's library alone."""
        result = self.doctor("--json", status=1, SIM_FAIL="cuInit:1+:100")
        self.assertIn("cuInit: CUDA_ERROR_NO_DEVICE", result.stderr)
        tables = json.loads(result.stdout)
        self.assertEqual(list(tables), ["driver", "functions", "missing", "open", "entry_points",
                                        "disabled"])
        self.assertEqual(tables["missing"][0]["missing"], "cuInit: CUDA_ERROR_NO_DEVICE")
        for row in tables["entry_points"]:
            self.assertEqual(row["result"], "reaches spillway; not called without a device", row)

    def test_findings(self):
        row, = json.loads(self.doctor("--json", MODE="observe").stdout)["disabled"]
        self.assertEqual(row["cause"], "SPILLWAY_MODE=observe")
        result = self.doctor(status=1, SIM_FAIL="cuMemMap:1+")
        self.assertIn("no: cuMemMap: CUDA_ERROR", result.stdout)

    def test_bad_usage(self):
        for words, said in ((["--mesure"], "did you mean --measure?"),
                            (["now"], "now: unexpected argument"),
                            (["--json=1"], "--json: no value is expected")):
            self.assertIn(said, self.doctor(*words, status=2).stderr)


class BadInput(Command):
    """One clear line naming what is wrong; the program goes on with the default."""
    PROGRAM = (PROGRAMS / "door_runtime",)

    def check_line(self, names, **options):
        result = self.run_program(*self.PROGRAM, allow=[r"out of memory", *names], **options)
        lines = [line for line in result.said() if "out of memory" not in line]
        self.assertEqual(len(lines), 1, result.stderr)
        for name in names:
            self.assertIn(name, lines[0])
        self.assertEqual(result.device()["allocs"], 6)
        return lines[0]

    def test_unknown_variable(self):
        self.assertIn("SPILLWAY_LIMIT", self.check_line(["SPILLWAY_LIMITT"], LIMITT="1GiB"))

    def test_bad_sizes(self):
        for size in ("much", "-1", "1GiBB", "1e3", "99999999999999999999", "8 parsecs"):
            with self.subTest(size):
                self.check_line(["SPILLWAY_LIMIT", size], LIMIT=size)

    def test_limit_above_the_device(self):
        self.check_line(["SPILLWAY_LIMIT", "9GiB"], LIMIT="9GiB", SIM_MEMORY="4GiB")
        self.check_line(["SPILLWAY_LIMIT=9 GiB"], LIMIT=9 << 30, SIM_MEMORY="4GiB")

    def test_bad_words(self):
        self.check_line(["SPILLWAY_MODE", "sensor", "tensor"], MODE="sensor")
        self.check_line(["SPILLWAY_SPILL", "maybe"], SPILL="maybe")
        self.check_line(["SPILLWAY_LOG", "loud"], LOG="loud")

    def test_statistics_that_cannot_be_written(self):
        result = self.run_program(*self.PROGRAM, allow=["out of memory", "/no/such/folder"],
                                  STATS="/no/such/folder/stats.json")
        self.assertTrue(any("/no/such/folder/stats.json" in line for line in result.said()))

    def test_bad_option_of_the_simulator(self):
        for name, value in (("SIM_MEMORY", "much"), ("SIM_PROFILE", "abacus"),
                            ("SIM_FAIL", "nonsense")):
            with self.subTest(name):
                result = self.run_program(*self.PROGRAM, preload=False,
                                          allow=["SPILLWAY_" + name], **{name: value})
                self.assertEqual(len(result.said()), 1, result.stderr)

    def test_trace_that_is_none(self):
        path = self.folder / "no-trace.csv"
        for text, line in (("", 1), ("hello\n", 1), ("id,lower,upper,size\n1,2,1,5\n", 2),
                           ("id,lower,upper,size\n1,2,3,4\nx\n", 3)):
            with self.subTest(text):
                path.write_text(text)
                result = self.run_program(harness.REPLAY, path, status=2)
                self.assertEqual(result.stderr, f"{path}: line {line}: not a trace: "
                                                "expected id,lower,upper,size\n")

    def test_program_that_uses_no_cuda_says_nothing(self):
        result = self.run_program("true", LIMITT="1", LIMIT="much", STATS=self.folder / "none",
                                  SUMMARY="on") if not harness.SANITIZED else None
        if result is not None:
            self.assertEqual(result.stdout + result.stderr, "")
            self.assertFalse((self.folder / "none").exists())


if __name__ == "__main__":
    harness.main()
