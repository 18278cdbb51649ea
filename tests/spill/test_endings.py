#!/usr/bin/env python3
"""Memory, streams, threads and contexts that end while other work goes on, or that nobody asked
about before: programs do as without spillway."""
import json
import re

import spill  # finds the harness
import harness

ENDINGS = harness.ROOT / "tests/spill/endings"
MEMORY = "64MiB"


class Endings(harness.Case):
    def run_case(self, name, expected, **options):
        result = self.run_both(ENDINGS, name, SIM_MEMORY=MEMORY, CHECK="on", **options)
        self.assertEqual(result.stdout, expected)
        return result

    def test_another_context_ends(self):
        """A context that was only retained keeps the device's pool open."""
        self.run_case("other-context", "byte 3\n")

    def test_a_context_that_does_not_end(self):
        self.run_case("refused-end", "refused, byte 3\n")

    def test_a_thread_ends(self):
        """The memory that it freed on its own stream waits for its work, not for that of the next
        thread, to which the C library gives the same pthread_t."""
        self.run_case("thread", "0 bytes wrong\n")

    def test_a_wait_for_one_device(self):
        """It says nothing of work of another device, which used the same memory."""
        self.run_case("peer-free", "0 bytes wrong\n", SIM_DEVICES=2)

    def test_a_wait_for_one_context(self):
        """It says nothing of work of another context of the device."""
        self.run_case("context-free", "0 bytes wrong\n")

    def test_a_wait_that_fails(self):
        self.run_case("refused-wait", "999, 0 bytes wrong\n999, 0 bytes wrong\n")

    def test_a_free_while_a_thread_waits(self):
        self.run_case("late-free", "0 bytes wrong\n0 bytes wrong\n")

    def test_rights_of_another_device(self):
        for name in "pool-right", "peer-right", "ended-right":
            with self.subTest(name):
                self.run_case(name, "reached\n", SIM_DEVICES=2)

    def test_a_right_that_is_taken_away(self):
        self.run_case("lost-right", "refused\n", SIM_DEVICES=2)

    def test_a_stream_ends_before_its_work(self):
        """The memory that it freed waits for the work, and nobody names the stream again."""
        log = self.folder / "log"
        self.run_case("ended-stream", "0 bytes wrong\n", SIM_LOG=log)
        results = re.findall(r" cuEventRecord\w* = (\d+)", log.read_text())
        self.assertEqual(set(results), {"0"})

    def test_a_context_is_detached(self):
        result = self.run_case("detach", "6 rounds\n", HOST_LIMIT="128MiB")
        self.assertEqual(result.device()["host_peak_bytes"], 0)

    def test_page_locked_memory(self):
        self.assertEqual(self.run_case("pinned", "").device()["pinned_bytes"], 0)

    def test_a_library_ends(self):
        """The handles of its kernels may be those of others then: the layout of each kernel is
        asked for again, and not without need."""
        asked = {}
        for name in "library", "no-library":
            log = self.folder / name
            result = self.run_program(ENDINGS, name, SIM_MEMORY=MEMORY, CHECK="on", SIM_LOG=log,
                                      allow=[spill.SPILL_LINE])
            self.assertEqual(result.stdout, "0 words wrong\n")
            asked[name] = log.read_text().count(" cuFuncGetParamInfo = ")
        self.assertGreater(asked["no-library"], 0)
        self.assertEqual(asked["library"], 2 * asked["no-library"])

    def test_an_abandoned_capture(self):
        """It ends with its context: memory may move again."""
        result = self.run_program(ENDINGS, "capture", SIM_MEMORY=MEMORY, CHECK="on",
                                  allow=[spill.SPILL_LINE])
        self.assertEqual(result.stdout, "9 blocks\n")

    def test_a_graph_ends(self):
        """A block that begins elsewhere and reaches over an address that it named keeps its place
        for another graph."""
        policy = self.folder / "others.json"
        rule = {"name": "others", "match": {"size": {"min": "7MiB", "max": "7MiB"}},
                "action": {"placement": "device"}}
        policy.write_text(json.dumps({"version": 1, "rules": [rule]}))
        result = self.run_program(ENDINGS, "graph", SIM_MEMORY=MEMORY, CHECK="on", POLICY=policy,
                                  MOVE_WAIT=200, allow=["device 0 is full", "no more room for it"])
        self.assertEqual(result.stdout, "over it, 0 words wrong\n")


if __name__ == "__main__":
    harness.main()
