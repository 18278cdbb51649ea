#!/usr/bin/env python3
"""Where chunks of host memory can be: tried in processes that may die, kept for later ones."""
import os
import re
import shutil
import unittest

from spill import PATIENT, PINNED_LINE, SPILL_LINE
import harness
from harness import GIB, MIB

MOVES = harness.ROOT / "tests/spill/moves"
CAPTURE = harness.PROGRAMS / "capture"
OPTIONS = {"SIM_MEMORY": "64MiB", "SIM_SEED": 1, "CHECK": "on", "LOG": "info", **PATIENT}
LINES = [SPILL_LINE, "CUDA IPC", "simulated GPU with", "mode auto", "mode tensor"]
TRIED = r"device 0: chunks at ([^:]*): (.*)"
KNOWN = r"device 0: chunks of host memory: an earlier process found (.*)"
MISSING = "the command spillway is not beside"
CAUGHT = "a sanitizer catches the signal and ends the process that tries with an exit code"
MEMINFO = "MemTotal: {} kB\nMemAvailable: {} kB\n"


class Host(harness.Case):
    def spill(self, env=None, pinned=False, **options):
        """Runs a program that spills. Returns what was tried and the statistics."""
        options = {"SUMMARY": "off", "STATS": self.folder / "stats", **OPTIONS, **options}
        env = harness.environment(**options) | (env or {})
        result = self.run_command([MOVES, "pointers"], env)
        self.assertEqual(result.status, 0, result.stderr)
        for line in result.said():
            allowed = [*LINES, TRIED, KNOWN] + [PINNED_LINE, MISSING] * pinned
            self.assertTrue(any(re.search(pattern, line) for pattern in allowed), line)
        result.stats = harness.json.loads((self.folder / "stats").read_text())
        if pinned:
            self.assertEqual(result.device()["moves"], 0)
            self.assertIn(PINNED_LINE, result.stderr)
        else:
            self.assertGreater(result.device()["moves"], 0)
        return re.findall(TRIED, result.stderr), result

    def root(self, memory, cpus):
        """A machine with nodes that have memory and nodes that have CPUs."""
        folder = self.folder / "machine/sys/devices/system/node"
        (self.folder / "machine/proc").mkdir(parents=True)
        (self.folder / "machine/proc/meminfo").write_text(MEMINFO.format(2 * GIB >> 10, GIB >> 10))
        if memory is not None:
            folder.mkdir(parents=True)
            (folder / "has_memory").write_text(memory + "\n")
            (folder / "has_cpu").write_text(cpus + "\n")
        return self.folder / "machine"

    def test_first_node(self):
        self.assertEqual(self.spill()[0], [("NUMA node 0 of the host", "work")])

    def test_node_without_memory_is_not_tried(self):
        """The driver would kill the process at the node that is next to the device."""
        self.assertEqual(self.spill(SIM_HOST_NUMA="asymmetric")[0],
                         [("NUMA node 0 of the host", "work")])

    @unittest.skipIf(harness.SANITIZED, CAUGHT)
    def test_a_try_dies(self):
        tried, _ = self.spill(SIM_HOST_NUMA="crash")
        self.assertEqual(tried[0][0], "NUMA node 0 of the host")
        self.assertIn("was killed by signal 11", tried[0][1])
        self.assertEqual(tried[1:], [("the host", "work")])

    def test_nodes_are_refused(self):
        self.assertEqual(self.spill(SIM_HOST_NUMA="host")[0], [("the host", "work")])

    def test_nodes_of_the_system(self):
        for number, (memory, cpus, where) in enumerate((
                ("1", "0-1", "NUMA node 1 of the host"), ("0-1", "1", "NUMA node 1 of the host"),
                ("0,2-3", "3", "NUMA node 3 of the host"), ("1", "0", "the host"),
                (None, None, "the host"))):
            with self.subTest(memory=memory, cpus=cpus):
                self.setUp()
                self.assertEqual(self.spill(SIM_ROOT=self.root(memory, cpus), SIM_HOST_NODES=4)[0],
                                 [(where, "work")])

    def test_command_is_missing(self):
        """Without the command nothing is tried in the process instead."""
        shutil.copy(harness.OBJECT, self.folder)
        tried, result = self.spill({"LD_PRELOAD": str(self.folder / "libspillway.so")}, pinned=True,
                                   SIM_HOST_NUMA="crash")
        self.assertEqual(tried, [])
        self.assertIn(f"{MISSING} {self.folder}/libspillway.so", result.stderr)

    def test_verdict_is_kept(self):
        runs = self.folder / "run"
        runs.mkdir()
        env = {"SPILLWAY_RUN_DIR": str(runs)}
        for numa, count in (("on", 1), ("crash", 2)):
            if numa == "crash" and harness.SANITIZED:
                continue  # see CAUGHT: the verdict may be uncertain then
            with self.subTest(numa=numa):
                for file in runs.glob("host-*"):
                    file.unlink()
                self.assertEqual(len(self.spill(env, SIM_HOST_NUMA=numa)[0]), count)
                verdict, = runs.glob("host-*")
                tried, result = self.spill(env, SIM_HOST_NUMA=numa)
                self.assertEqual(tried, [])
                self.assertRegex(result.stderr, KNOWN)
        for spoil in (lambda: verdict.chmod(0o666),
                      lambda: verdict.write_text(verdict.read_text().replace("boot=", "boot=0")),
                      lambda: (verdict.rename(runs / "away"), verdict.symlink_to(runs / "away"))):
            spoil()
            self.assertEqual(len(self.spill(env)[0]), 1)
            self.assertEqual(verdict.stat().st_mode & 0o777, 0o600)
            self.assertFalse(verdict.is_symlink())

    def test_nothing_is_tried_for_a_program_that_fits(self):
        """Not even before a capture."""
        result = self.run_program(CAPTURE, allow=["."], LOG="info", SIM_HOST_NUMA="crash")
        self.assertNotRegex(result.stderr, TRIED)

    def test_before_a_capture_that_may_need_it(self):
        """While a capture is open nothing can be tried, so it is tried before."""
        result = self.run_program(MOVES, "capture", allow=[SPILL_LINE, TRIED, *LINES], **OPTIONS)
        self.assertRegex(result.stderr, TRIED)

    def test_launcher_removes_the_verdict(self):
        """The folder of a run leaves nothing behind."""
        env = harness.environment(preload=False, sim=False, STATS=self.folder / "stats") | \
            {"TMPDIR": str(self.folder)}
        before = set(os.listdir("/dev/shm"))
        done = self.run_command([harness.COMMAND, "sim", "--memory", "64MiB", "--log", "info", "--",
                                 MOVES, "pointers"], env)
        self.assertRegex(done.stderr, TRIED)
        left = {name for name in set(os.listdir("/dev/shm")) - before if "spillway" in name}
        self.assertFalse(any("host-" in file for name in left
                             for file in os.listdir(f"/dev/shm/{name}")), left)

    def doctor(self, numa):
        done = self.run_command([harness.COMMAND, "doctor"],
                                harness.environment(preload=False, SIM_HOST_NUMA=numa))
        return done.stdout

    @unittest.skipIf(harness.SANITIZED, CAUGHT)
    def test_doctor_after_a_try_that_dies(self):
        self.assertIn("was killed by signal 11; the host: work", self.doctor("crash"))

    def test_doctor_where_nothing_is_tried(self):
        self.assertIn("no: the driver says that it cannot", self.doctor("off"))


class Budget(harness.Case):
    """How much host memory is taken: machines made of a few files."""
    def machine(self, available, total=16 * GIB, gpus=1, **files):
        files = {"proc/meminfo": MEMINFO.format(total >> 10, available >> 10),
                 "sys/devices/system/node/has_memory": "0\n",
                 "sys/devices/system/node/has_cpu": "0\n", **files}
        for name, text in files.items():
            path = self.folder / "machine" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        folder = self.folder / "machine/proc/driver/nvidia/gpus"
        for gpu in range(gpus):
            (folder / f"0000:{gpu:02x}:00.0").mkdir(parents=True)
        return {"SIM_ROOT": self.folder / "machine"}

    def limit(self, machine, **options):
        result = self.run_program(MOVES, "pointers", allow=[*LINES, TRIED], **OPTIONS, **machine,
                                  **options)
        return result.device()["host_limit_bytes"]

    def test_half_for_all_gpus_of_the_machine(self):
        """One visible GPU of eight, as each of eight ranks has: an eighth of the half."""
        self.assertEqual(self.limit(self.machine(8 * GIB, gpus=8)), 8 * GIB // 2 // 8)

    def test_ranks_on_the_machine(self):
        """Two ranks on a machine of eight GPUs: each has half of the half."""
        for name, text, ranks in (
                ("LOCAL_WORLD_SIZE", "2", 2), ("SLURM_TASKS_PER_NODE", "4(x2)", 4),
                ("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 3), ("MPI_LOCALNRANKS", "2", 2),
                ("LOCAL_WORLD_SIZE", "1", 8), ("LOCAL_WORLD_SIZE", "many", 8)):
            with self.subTest(name, text=text):
                self.setUp()
                os.environ[name] = text
                self.addCleanup(os.environ.pop, name, None)
                self.assertEqual(self.limit(self.machine(8 * GIB, gpus=8)), 8 * GIB // 2 // ranks)
                del os.environ[name]

    def test_simulated_gpus_that_are_not_visible(self):
        os.environ["CUDA_VISIBLE_DEVICES"] = "1"
        self.addCleanup(os.environ.pop, "CUDA_VISIBLE_DEVICES")
        self.assertEqual(self.limit({"SIM_DEVICES": 4, "SIM_HOST_MEMORY": "4GiB"}), GIB // 2)

    def test_control_groups(self):
        for version, files in (
                ("2", {"proc/self/cgroup": "0::/job\n",
                       "sys/fs/cgroup/job/memory.max": f"{2 * GIB}",
                       "sys/fs/cgroup/job/memory.current": f"{GIB}"}),
                ("1", {"proc/self/cgroup": "4:memory:/job\n",
                       "sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{2 * GIB}",
                       "sys/fs/cgroup/memory/job/memory.usage_in_bytes": f"{GIB}"})):
            with self.subTest(version=version):
                self.setUp()
                self.assertEqual(self.limit(self.machine(8 * GIB, **files)), GIB // 2)

    def test_memory_that_went_meanwhile(self):
        """The user allows 1 GiB, but the machine has 1 MiB above what stays free."""
        line = r"short of host memory: device 0 has spilled 0 B and may take 1 MiB more now"
        group = {"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": f"{8 * GIB}",
                 "sys/fs/cgroup/job/memory.current": f"{7 * GIB - MIB}"}
        for available, files in ((GIB + MIB, {}), (9 * GIB, group)):
            with self.subTest(files=files):
                self.setUp()
                machine = self.machine(available, **files)
                result = self.run_program(MOVES, "faults", HOST_LIMIT="1GiB", **OPTIONS, **machine,
                                          allow=[*LINES, TRIED, line, "out of memory on device 0"])
                self.assertRegex(result.stderr, line)
                self.assertEqual(result.stderr.count("short of host memory"), 1)
                self.assertEqual(result.device()["host_peak_bytes"], 0)

    def test_more_than_the_machine_has(self):
        """Machines that grow with use report less than they could have: the user is told."""
        line = r"HOST_LIMIT=64GiB is more than the 16 GiB that .* has; the limit is 4 GiB"
        result = self.run_program(MOVES, "pointers", HOST_LIMIT="64GiB", **OPTIONS,
                                  **self.machine(8 * GIB), allow=[*LINES, TRIED, line])
        self.assertRegex(result.stderr, line)


if __name__ == "__main__":
    harness.main()
