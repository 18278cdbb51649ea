#!/usr/bin/env python3
"""The pool in the place of PyTorch's native allocator, on stand-ins for PyTorch's libraries: what
the program sees is the same with the pool and without, and the pool served what it should."""
import subprocess

import fakes
import harness
from harness import GIB, MIB

OBJECT, ORDER, ENDINGS = map(fakes.program, ("object", "order", "endings"))
SMALL = {"SIM_MEMORY": "64MiB", "SIM_OVERHEAD": "off"}
HISTORY = r"from now on its own cache serves all tensors \(as in mode segment\)$"
OUT_OF_MEMORY = r"^spillway: out of memory on device 0"


class Object(fakes.Case):
    def both(self, *command, allow=(), **options):
        return self.run_both(*command, allow=[fakes.TENSORS, *allow], CHECK="on", **options)

    def check_case(self, name, tensors, segments, **options):
        """`segments`: requests of the native part."""
        result = self.both(OBJECT, name, **options)
        self.assertEqual(result.stats["mode"], "tensor")
        self.assertEqual(result.device()["allocs"], tensors + segments)
        self.assertIn(f"segments: {segments}\n", result.stderr)
        return result

    def test_figures(self):
        self.check_case("plain", tensors=3, segments=0)

    def test_figures_of_both_parts(self):
        self.check_case("both", tensors=2, segments=2)

    def test_memory_from_before(self):
        result = self.check_case("before", tensors=1, segments=1)
        self.assertIn("native: 1", result.stdout)

    def test_frees_on_another_thread(self):
        self.check_case("elsewhere", tensors=2, segments=2)

    def test_thread_without_context(self):
        self.check_case("context", tensors=1, segments=0)

    def test_deleters(self):
        self.check_case("deleters", tensors=1, segments=3)

    def test_bases(self):
        self.check_case("bases", tensors=1, segments=1)

    def test_empty_cache(self):
        result = self.check_case("emptied", tensors=1, segments=1)
        self.assertEqual(result.device()["committed_bytes"], 0)

    def test_fraction(self):
        result = self.both(OBJECT, "fraction", allow=[OUT_OF_MEMORY], SPILL="off", **SMALL)
        self.assertEqual(result.device()["spilled_bytes"], 0)

    def test_special_requests(self):
        self.check_case("special", tensors=3, segments=3, allow=[HISTORY])

    def test_tracers_and_profilers(self):
        self.check_case("traced", tensors=1, segments=1)

    def test_capture(self):
        self.check_case("captured", tensors=2, segments=1)

    def test_snapshot(self):
        """Used and free memory add up to two chunks of the pool. A trim leaves no free memory."""
        err = self.check_case("snapshots", tensors=2, segments=1).stderr
        self.assertIn(f"unused in all: {3 * MIB - 1024 - 3072}\n", err)
        self.assertIn("unused in none: 0\n", err)

    def test_refusal(self):
        """One refusal for the program is one report, and one in the books unless spilling is off:
        then the native part's two requests are counted."""
        for ooms, options in ((1, {"HOST_LIMIT": "8MiB"}), (2, {"SPILL": "off"})):
            result = self.both(OBJECT, "refusal", allow=[OUT_OF_MEMORY], **options, **SMALL)
            self.assertEqual(result.device()["ooms"], ooms)
            self.assertEqual(len(result.reports()), 1)

    def test_spill_before_refusal(self):
        result = self.run_program(OBJECT, "spilled", allow=[fakes.TENSORS, fakes.SPILLED],
                                  CHECK="on", **SMALL)
        self.assertEqual(result.device()["ooms"], 0)
        self.assertGreater(result.device()["spilled_bytes"], 0)
        self.assertEqual(result.device()["allocs"], 4)

    def test_other_modes(self):
        """The pool serves no tensor, and the program sees the same."""
        for mode in ("segment", "observe"):
            for name in ("plain", "both", "deleters", "snapshots", "special"):
                with self.subTest(mode=mode, case=name):
                    result = self.run_both(OBJECT, name, allow=[f"mode {mode} "], MODE=mode)
                    self.assertEqual(result.stats["mode"], mode)
        self.run_both(OBJECT, "both", **{"": "off"})

    def test_without_cache(self):
        """A variable with which PyTorch caches nothing."""
        harness.os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
        self.addCleanup(harness.os.environ.pop, "PYTORCH_NO_CUDA_MEMORY_CACHING")
        self.run_both(OBJECT, "plain",
                      allow=["mode segment .*PYTORCH_NO_CUDA_MEMORY_CACHING is set"])


class Order(fakes.Case):
    def check_order(self, case, **options):
        result = self.run_program(ORDER, case, allow=[fakes.TENSORS], CHECK="on", **options)
        self.assertEqual(result.stdout, "wrong: 0\n")
        return result

    def test_recorded_streams(self):
        self.check_order("recorded")
        self.check_order("recorded natively")

    def test_streams_that_are_gone(self):
        for case in ("destroyed other", "replaced other", "destroyed own", "replaced own"):
            with self.subTest(case):
                self.check_order(case)

    def test_order_of_raw_memory(self):
        self.check_order("raw")

    def test_stream_of_a_thread(self):
        self.check_order("thread's stream")

    def test_wait_before_refusal(self):
        result = self.run_program(ORDER, "waited", allow=[fakes.TENSORS], SPILL="off", **SMALL)
        self.assertEqual(result.stdout, "allocated: 0\n")
        self.assertEqual(result.device()["ooms"], 0)


class Endings(fakes.Case):
    def test_fork(self):
        result = self.run_both(ENDINGS, "fork", allow=[fakes.TENSORS])
        self.assertIn("status 0", result.stdout)

    def test_exit(self):
        self.run_both(ENDINGS, "exit", allow=[fakes.TENSORS])

    def test_context_that_is_gone(self):
        result = self.run_program(ENDINGS, "reset", allow=[fakes.TENSORS], CHECK="on")
        self.assertEqual(result.stdout, "done\n")

    def test_other_process(self):
        """Handles of a tensor of the pool and of the native part."""
        env = harness.environment(SUMMARY="off", STATS=self.folder / "share.json")
        env["LD_LIBRARY_PATH"] += f":{self.libraries}"
        with subprocess.Popen([ENDINGS, "share", "wait"], env=env, stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as owner:
            handles = [owner.stdout.readline().strip() for _ in range(2)]
            said = [self.run_program(ENDINGS, "open", handle, allow=[r"mode "]).stdout
                    for handle in handles]
            _, errors = owner.communicate("\n", timeout=60)
        self.assertEqual(owner.returncode, 0, errors)
        self.assertEqual(said, ["30, wrong: 0\n", "31, wrong: 0\n"])

    def test_memory_that_cannot_be_shared(self):
        """The native allocator answers: PyTorch's throws, the stand-in's has a handle of zeros."""
        result = self.run_program(ENDINGS, "share", allow=[fakes.TENSORS, r"cannot be shared"],
                                  SIM_FAIL="cuMemExportToShareableHandle:1+")
        self.assertEqual(result.stdout, 2 * ("00" * 64 + "\n"))


if __name__ == "__main__":
    harness.main()
