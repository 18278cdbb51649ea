#!/usr/bin/env python3
"""Two processes share blocks of the pool by CUDA IPC (sharing/ipc.c)."""
import os
import unittest

import harness
from harness import MIB

PROGRAMS = {"driver": harness.PROGRAMS / "sharing/ipc",
            "runtime": harness.PROGRAMS / "sharing/ipc_runtime"}
SPILL_LINE = r"device 0 is full: for a block of .* on the host now; up to .* may be used"
REFUSED = r"a block of pool memory cannot be shared with other processes by CUDA IPC: .*"
GONE = r"memory of process \d+ cannot be mapped: it has ended"
LEFT_NOTHING = [f"{who}: {what}" for who in ("other", "owner") for what in
                ("descriptors +0", "free memory as before", "mappings as before")]


class Ipc(harness.Case):
    def share(self, *command, by="driver", allow=(), **options):
        """The lines of both processes, those of each in their order."""
        result = self.run_program(PROGRAMS[by], *command, allow=allow, CHECK="on",
                                  SIM_DEVICES=options.pop("SIM_DEVICES", 1), **options)
        self.result = result
        return sorted(result.stdout.splitlines(), key=lambda line: line[:5])

    def test_content(self):
        """Small and large blocks, offsets, neighbours, by both doors, written from both sides."""
        for by in PROGRAMS:
            with self.subTest(by):
                self.assertEqual(self.share("exchange", by=by),
                                 ["other: 20 opened", "owner: 10 blocks"])

    def test_content_with_chunks_of_other_sizes(self):
        for chunk in ("2MiB", "64MiB"):
            with self.subTest(chunk):
                self.assertEqual(self.share("exchange", CHUNK=chunk),
                                 ["other: 20 opened", "owner: 10 blocks"])

    def test_without_spilling(self):
        self.assertEqual(self.share("exchange", SPILL="off"),
                         ["other: 20 opened", "owner: 10 blocks"])

    def test_rules(self):
        """What cuda.h promises; every byte of a handle counts."""
        expected = ["other: twice the same 1", "other: range 1 of 4 MiB", "other: close inside 1",
                    "other: closed too often 1",
                    "other: freed 1, with a new block there 1",
                    "owner: own handle 201", "owner: capable 1"]
        for by in PROGRAMS:
            with self.subTest(by):
                lines = self.share("rules", by=by, allow=[GONE])
                self.assertEqual([line for line in lines if "without" not in line], expected)

    def assert_nothing_left(self, lines):
        """A sanitizer has mappings of its own, which grow in number."""
        if harness.SANITIZED:
            lines = [line.replace("mappings more", "mappings as before") for line in lines]
        self.assertEqual(sorted(lines), LEFT_NOTHING)

    def test_nothing_is_left(self):
        """A thousand blocks."""
        self.assert_nothing_left(self.share("many", 1000))
        device = self.result.device()
        self.assertEqual(device["live_bytes"], 0)
        self.assertLessEqual(device["committed_peak_bytes"], 64 * MIB)

    def test_nothing_is_left_by_the_runtime(self):
        self.assert_nothing_left(self.share("many", 100, by="runtime"))

    def test_pressure(self):
        """A block that was spilled is shared; then it stays, while the others go."""
        lines = self.share("pressure", SIM_MEMORY="64MiB", allow=[SPILL_LINE], MOVE_WAIT=1000)
        self.assertEqual(lines, ["other: as written", "owner: as written"])
        self.assertGreaterEqual(self.result.device()["spilled_bytes"], 64 * MIB)
        self.assertGreaterEqual(self.result.device()["promoted_bytes"], 16 * MIB)

    def test_owner_killed(self):
        """What is open stays usable; nothing of it is left, not even a socket."""
        for by in PROGRAMS:
            with self.subTest(by):
                lines = self.share("owner_killed", by=by, allow=[GONE])
                self.assertEqual(lines, ["owner: opened after its end 205",
                                         "owner: sockets left 0"])

    def test_other_killed(self):
        self.assertEqual(self.share("other_killed"), ["owner: freed 1"])

    def test_fork(self):
        """A child has no exports, and leaves those of its parent alone."""
        self.assertEqual(self.share("forks"),
                         ["other: 2 opened", "owner: exchanged beside a child and after it"])

    def test_another_program_of_the_owner(self):
        """A process that executes another program keeps its pid: its old block is not meant."""
        result = self.run_program(harness.PROGRAMS / "sharing/ipc_again", "exec", CHECK="on")
        self.assertEqual(result.stdout, "read 1 and 2\n")

    def test_closed_descriptors(self):
        """A program that closes all descriptors gets a handle that works the next time it asks."""
        result = self.run_program(harness.PROGRAMS / "sharing/ipc_again", "closed", CHECK="on")
        self.assertEqual(result.stdout, "read 0\n")

    def test_signals_while_a_block_is_opened(self):
        result = self.run_program(harness.PROGRAMS / "sharing/ipc_again", "interrupted", CHECK="on")
        self.assertEqual(result.stdout, "read 1, interrupted\n")

    def test_threads(self):
        """Several export at once, while another writes to the blocks: no write is lost."""
        self.assertEqual(self.share("threads", MOVE_WAIT=1000),
                         ["other: 48 opened", "owner: as written"])

    def test_full_device(self):
        """A little free memory is enough; without any, other blocks or nothing can go."""
        self.assertEqual(self.share("full", 56, SIM_MEMORY="64MiB", SPILL="off"),
                         ["other: 1 opened", "owner: shared 0"])
        lines = self.share("full", 64, SIM_MEMORY="64MiB", SPILL="off", allow=[REFUSED])
        self.assertEqual(lines, ["other: 0 opened", "owner: shared 2"])
        self.assertIn("--pass", self.result.said()[0])
        self.assertIn("--mode observe", self.result.said()[0])

    def test_refused(self):
        """With the error that CUDA gives, and one line for each reason."""
        lines = self.share("refused", allow=[REFUSED])
        self.assertEqual(lines, ["owner: in a capture 205", "owner: after it 0",
                                 "owner: again in one 0", "owner: registered 1",
                                 "owner: registered after it was shared 0", "owner: freed 1"])
        self.assertEqual(len(self.result.said()), 2)

    def test_contexts(self):
        """They take along what was exported and opened in them."""
        self.assertEqual(self.share("contexts"),
                         ["other: after its context 1, closed 1", "other: 1 opened",
                          "owner: exchanged in a new context"])

    def test_other_device(self):
        lines = self.share("devices", SIM_DEVICES=2)
        self.assertEqual(lines, ["other: 1 opened", "owner: as written"])

    def test_several_at_once(self):
        """What is open stays so where it cannot be closed, and is none of a child's."""
        self.assertEqual(self.share("several"),
                         ["other: closed in a capture 0", "other: open in a child 0",
                          "other: closed 0, 0, again 1"])

    def test_threads_that_open_one_block(self):
        """They have one mapping, which is open as often as they opened it."""
        for by in PROGRAMS:
            with self.subTest(by):
                lines = self.share("race", 40, by=by)
                self.assertEqual(lines[0], "other: 40 opened")
                self.assertIn(lines[1], ["other: mappings as before"] +
                              ["other: mappings more"] * harness.SANITIZED)

    def test_without_descriptors(self):
        """It is refused, and works when there are some again."""
        lines = self.share("starved", allow=[REFUSED])
        self.assertEqual(lines, ["other: without a descriptor 2", "owner: without a socket 205",
                                 "owner: without a descriptor 205"])
        self.assertEqual(len(self.result.said()), 1)
        self.assertIn("no thread, socket or file descriptor left", self.result.said()[0])
        calls = self.result.device()["driver_calls"]
        self.assertEqual(calls["cuMemExportToShareableHandle"], 3)  # the first time none

    def test_stopped_owner(self):
        silent = r"memory of process \d+ cannot be mapped: it did not answer within 5 seconds"
        lines = self.share("stopped", allow=[silent])
        self.assertEqual(lines, ["owner: opened while it is stopped 205"])
        self.assertEqual(len(self.result.said()), 1)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_another_user(self):
        """Memory is shared between processes of one user only."""
        stranger = r"memory of process \d+ cannot be mapped: .* belongs to another user, .*"
        lines = self.share("stranger", allow=[stranger])
        self.assertEqual(lines, ["other: opened as another user 205", "other: opened 0"])
        self.assertEqual(len(self.result.said()), 1)

    def test_block_without_memory(self):
        """It gets its memory then, or is refused where there is none."""
        policy = self.folder / "lazy.json"
        policy.write_text('{"version": 1, "rules": [{"name": "lazy", "match": {}, '
                          '"action": {"commit": "lazy"}}]}')
        self.assertEqual(self.share("unused", 0, POLICY=policy), ["other: 1 opened"])
        lines = self.share("unused", 0, "refused", POLICY=policy, SPILL="off",
                           allow=["out of memory on device 0", REFUSED])
        self.assertEqual(lines, ["other: 1 opened", "owner: refused 2"])
        self.assertIn("requested by not known (cuIpcGetMemHandle)", self.result.stderr)

    def test_driver_without_such_memory(self):
        lines = self.share("full", 4, SIM_FAIL="cuMemExportToShareableHandle:1+", allow=[REFUSED])
        self.assertEqual(lines, ["other: 0 opened", "owner: shared 205"])

    def test_faults(self):
        """Each call fails once: the block keeps its content, shared or not."""
        for call in ("cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemSetAccess",
                     "cuMemExportToShareableHandle", "cuMemcpyAsync"):
            for n in range(1, 16):
                with self.subTest(call=call, n=n):
                    result = self.run_program(PROGRAMS["driver"], "full", 12, CHECK="on",
                                              SIM_MEMORY="64MiB", status=None, SPILL="off",
                                              SIM_FAIL=f"{call}:{n}", allow=[".*"])
                    self.assertNotIn("is broken", result.stderr)
                    self.assertNotIn("does not hold: has", result.stderr)


if __name__ == "__main__":
    harness.main()
