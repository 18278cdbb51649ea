#!/usr/bin/env python3
"""Small programs, plain and under spillway: equal output, and the expected counters."""
import itertools
import re
import unittest

import harness
from harness import GIB, MIB, PROGRAMS

OOM_LINE = r"out of memory"


class Programs(harness.Case):
    def test_odd_questions_to_the_resolver(self):
        self.run_both(PROGRAMS / "resolver")

    def test_older_and_per_thread_editions(self):
        result = self.run_both(PROGRAMS / "editions", SIM_DEVICES=2, CHECK="on")
        for device, allocs in zip(result.stats["devices"], (8, 10)):
            self.assertEqual(device["allocs"], allocs)
            self.assertEqual(device["frees"], allocs)
            self.assertEqual(device["live_bytes"], 0)
            self.assertEqual(device["live_peak_bytes"], 6 * MIB)
        self.assertEqual(result.device(0)["passed_allocs"], 1)
        self.assertEqual(result.device(1)["committed_bytes"], 0)

    def test_calls_that_the_driver_has_no_memory_for(self):
        """They are repeated when the pool has given back what it had to spare."""
        for preload in (False, True):
            result = self.run_program(PROGRAMS / "shortage", preload=preload, SIM_DEVICES=2,
                                      allow=[OOM_LINE, "spillway:  "],
                                      **({"SPILL": "off"} if preload else {}))
            calls = [line.split() for line in result.stdout.splitlines()]
            self.assertEqual(len(calls), 22)
            for name, plain, once, always, last in calls:
                self.assertEqual(once, plain if preload else "2", name)
                self.assertEqual((always, last), ("2", "2"), name)
        self.assertEqual(result.device()["forward_retries"], 2 * len(calls))
        self.assertEqual(result.device()["ooms"], 2)

    def test_many_streams(self):
        """They take little host memory each, which the next ones use again."""
        streams = 20000
        result = self.run_program(PROGRAMS / "many_streams", streams, 3)
        rounds = [[int(word) for word in line.split()] for line in result.stdout.splitlines()]
        self.assertEqual(len(rounds), 3)
        for living, gone in rounds:
            self.assertLess(living, streams * 2048)
            self.assertLess(gone, streams * 1536)
        self.assertLess(rounds[2][0], rounds[1][0] + 64 * 1024)
        self.assertLess(rounds[2][1], rounds[0][1] + 64 * 1024)

    @unittest.skipIf(harness.SANITIZED, "an end by cancellation confuses the sanitizer")
    def test_a_thread_is_cancelled(self):
        """In its own calls, not in those of CUDA, while it holds a lock."""
        everything = {"LOG": f"debug:{self.folder / 'log'}", "RECORD": self.folder / "a.spw",
                      "SITES": "native"}
        for options in {}, everything:
            result = self.run_program(PROGRAMS / "cancelled", SIM_MEMORY="64MiB",
                                      SIM_HOST_MEMORY="256MiB", timeout=20,
                                      allow=[OOM_LINE, "is full: for a block"], **options)
            self.assertEqual(result.stdout, "3 calls, cancelled\ndone\n")

    def test_answers_about_blocks(self):
        """Equal except for handles of physical memory, which the pool's blocks do not support; and
        for CUDA IPC, which they support on a stream as well."""
        bare = self.run_program(PROGRAMS / "answers", preload=False)
        pool = self.run_program(PROGRAMS / "answers")
        on_purpose = re.compile(r"^(ipc|retain|range handle).*\n", re.MULTILINE)
        self.assertEqual(on_purpose.sub("", bare.stdout), on_purpose.sub("", pool.stdout))
        answers = on_purpose.finditer(pool.stdout)
        for answer in (match.group().strip() for match in answers):
            name, _, value = answer.rpartition(" ")
            if name in ("ipc handle types", "ipc handle:"):
                self.assertEqual(value, "0", answer)
            else:
                self.assertNotEqual(value, "0", answer)

    def test_memory_pools(self):
        result = self.run_both(PROGRAMS / "pools")
        self.assertEqual(result.device()["allocs"], 6)
        self.assertEqual(result.device()["passed_allocs"], 6)
        self.assertEqual(result.device()["committed_bytes"], 0)
        result = self.run_both(PROGRAMS / "pools", MODE="observe", allow=["mode observe"])
        self.assertEqual(result.device()["allocs"], 0)
        self.assertEqual(result.device()["passed_bytes"], 0)

    def log_of(self, program, **options):
        """Runs a program and returns the simulated driver's log."""
        path = self.folder / f"log-{next(self.numbers)}"
        self.run_program(PROGRAMS / program, SIM_LOG=path, allow=[OOM_LINE], **options)
        return path.read_text()

    def test_default_pools_of_used_devices_only(self):
        """The driver reserves addresses for a pool that it is asked for."""
        for program, most in (("door_linked", 1), ("no_context", 2), ("peers", 2)):
            log = self.log_of(program, SIM_DEVICES=4, SIM_SEED=0)
            self.assertLessEqual(log.count(" cuDeviceGetDefaultMemPool = "), most, program)

    def test_chunks_for_network_cards(self):
        """As memory of cudaMalloc they can be registered, where the device supports it."""
        for options, expected in (({}, 1), ({"SIM_RDMA": "off"}, 0),
                                  ({"SIM_FAIL": "cuMemCreate:1:801"}, 0)):
            log = self.log_of("door_linked", **options)
            made = re.findall(r" cuMemCreate = 0 size=\d+ location=1:0 rdma=(\d)", log)
            self.assertEqual(set(made), {str(expected)}, options)

    def test_virtual_memory_of_the_program(self):
        result = self.run_both(PROGRAMS / "vmm")
        device = result.device()
        self.assertEqual(device["live_peak_bytes"], 32 * MIB)
        self.assertEqual(device["committed_peak_bytes"], 32 * MIB)
        self.assertEqual(device["live_bytes"], 0)
        self.assertEqual(device["pinned_bytes"], 3 * MIB)
        self.assertEqual(device["allocs"], 0)

    def test_own_memory_until_its_last_reference(self):
        result = self.run_both(PROGRAMS / "own_memory", CHECK="on")
        self.assertIn("release: 999\nrelease refused: 4 MiB\nrelease: 0\nmapping: 4 MiB\n",
                      result.stdout)
        device = result.device()
        self.assertEqual(device["vmm_creates"], 4)
        self.assertEqual(device["live_peak_bytes"], 8 * MIB)
        self.assertEqual(device["pinned_bytes"], 6 * MIB)
        self.assertEqual(device["pinned_peak_bytes"], 12 * MIB)
        for name in ("live_bytes", "vmm_bytes", "committed_bytes", "allocs"):
            self.assertEqual(device[name], 0, name)

    def test_senseless_arguments(self):
        """Nothing is lost by them: not even memory of a primary context that shall be destroyed."""
        result = self.run_both(PROGRAMS / "senseless", SIM_DEVICES=2, CHECK="on", SPILL="off",
                               allow=[OOM_LINE, "spillway:  "])
        self.assertEqual(result.device()["live_bytes"], 0)
        self.assertEqual(result.device()["ooms"], 3)
        self.assertEqual(result.device()["passed_allocs"], 1)

    def test_without_a_pool(self):
        """When none can be made, the driver serves the program."""
        for program in ("own_memory", "editions", "pools", "senseless"):
            with self.subTest(program):
                result = self.run_both(PROGRAMS / program, SIM_DEVICES=2, allow=["no pool"],
                                       SIM_FAIL="cuMemGetAllocationGranularity:1+:304")
                for device in result.stats["devices"]:
                    self.assertEqual(device["allocs"], 0)
                    self.assertEqual(device["live_bytes"], 0)

    def test_public_interface(self):
        path = self.folder / "statistics.json"
        result = self.run_program(PROGRAMS / "interface", path, STATS=path)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.device()["live_peak_bytes"], 5 * 8 * MIB)

    def test_spare_memory_yields_to_the_program(self):
        self.run_program(PROGRAMS / "vmm", "retry", SIM_MEMORY="4GiB")

    def test_free_waits_only_if_asked_to(self):
        """Programs may rely on the driver's cuMemFree, which waits."""
        for arguments, devices in (((), 1), (("other",), 2)):
            for seed in (1, 2, 3):
                with self.subTest(arguments=arguments, seed=seed):
                    options = {"SIM_SEED": seed, "SIM_DEVICES": devices}
                    result = self.run_program(PROGRAMS / "free_waits", *arguments, **options)
                    self.assertEqual(result.stdout, "stale\nthere in the end\n")
                    result = self.run_both(PROGRAMS / "free_waits", *arguments, FREE_WAITS="on",
                                           **options)
                    self.assertEqual(result.stdout, "there\nthere in the end\n")
                    self.assertEqual(result.device()["allocs"], 1)

    def test_capture_on_another_thread_stays_valid(self):
        self.run_program(PROGRAMS / "capture", SIM_SEED=1)
        result = self.run_program(PROGRAMS / "capture")
        self.assertEqual(result.stdout, "capture valid\n")
        self.assertGreater(result.device()["driver_calls"]["cuMemCreate"], 0)

    def test_capture_while_the_mode_cannot_be_set_at_once(self):
        for call in range(1, 12):
            with self.subTest(call=call):
                result = self.run_program(PROGRAMS / "capture", SIM_CAPTURE_VMM="unsafe",
                                          SIM_FAIL=f"cuThreadExchangeStreamCaptureMode:{call}:999")
                self.assertEqual(result.stdout, "capture valid\n")

    def test_capture_of_a_stream_of_which_the_driver_tells_nothing(self):
        """Its number or its context: the pool must know of the capture all the same."""
        for fail in ("", "cuStreamGetId:2:304", "cuStreamGetCtx:1:1"):
            with self.subTest(fail=fail):
                result = self.run_program(PROGRAMS / "capture", "free", GROWTH="0%", SIM_FAIL=fail)
                self.assertEqual(result.stdout, "capture valid\n")

    @unittest.skipIf(harness.SANITIZED, "sanitizers have a pthread_mutex_lock of their own")
    def test_capture_that_begins_meanwhile(self):
        """Without a host tier nothing else keeps the two threads apart."""
        for spill in ("auto", "off"):
            result = self.run_program(PROGRAMS / "capture_race", SPILL=spill)
            self.assertEqual(result.stdout, "captures valid\n")
            result = self.run_program(PROGRAMS / "capture_race", "free", FREE_WAITS="on",
                                      SPILL=spill)
            self.assertEqual(result.stdout, "captures valid\n")

    def test_thread_without_context(self):
        result = self.run_program(PROGRAMS / "no_context", SIM_MEMORY="1GiB")
        self.assertEqual(result.stdout, "waited\n")
        self.assertGreater(result.device()["host_waits"], 0)

    def test_memory_of_a_graph_passes(self):
        result = self.run_both(PROGRAMS / "graph_memory")
        self.assertEqual(result.device()["passed_allocs"], 1)
        self.assertEqual(result.device()["allocs"], 1)

    def test_what_a_capture_forbids(self):
        """The answers and the captures are those of the driver, wherever the memory is from."""
        for spill in ("auto", "off"):
            result = self.run_both(PROGRAMS / "forbidden", SPILL=spill)
            self.assertEqual(result.stdout.count("cudaErrorStreamCaptureUnsupported"), 10)
            self.assertEqual(result.stdout.count("cudaErrorStreamCaptureInvalidated"), 10)
            self.assertEqual(result.device()["passed_allocs"], 0)
            self.assertEqual(result.device()["ooms"], 0)

    def test_a_capture_after_the_device_was_full(self):
        """What was freed waits for fences, and none can be recorded during the capture."""
        for way in ("whole", "blocks", "busy"):
            for spill in ("auto", "off"):
                with self.subTest(way, spill=spill):
                    result = self.run_both(PROGRAMS / "full_capture", way, SIM_MEMORY="128MiB",
                                           SPILL=spill, MOVE_WAIT=100,
                                           allow=["full: for a block", "out of memory"])
                    self.assertEqual({line.rpartition(": ")[2] for line in
                                      result.stdout.splitlines()}, {"cudaSuccess"})

    def test_fork_before_cuda(self):
        result = self.run_both(PROGRAMS / "forks", "before")
        self.assertEqual(len(list(self.folder.glob("stats-*"))), 2, "one file for each process")
        self.assertEqual(result.device()["passed_allocs"], 0)

    def test_fork_after_cuda(self):
        result = self.run_both(PROGRAMS / "forks", "after")
        self.assertEqual(len(list(self.folder.glob("stats-*"))), 1, "the child used no CUDA")
        self.assertEqual(result.device()["allocs"], 3)
        self.assertEqual(result.device()["live_bytes"], 0)
        self.assertEqual(result.device()["live_peak_bytes"], 2 * MIB)

    @unittest.skipIf(harness.SANITIZED, "the sanitizer needs memory in the child")
    def test_fork_without_memory(self):
        """A child that can have no figures of its own leaves the parent's alone."""
        for way in "poor", "refused":
            with self.subTest(way):
                before = set(self.folder.glob("stats-*"))
                result = self.run_both(PROGRAMS / "forks", "after", way, CHECK="on")
                device = result.device()
                self.assertEqual(len(set(self.folder.glob("stats-*")) - before), 1)
                self.assertEqual((device["allocs"], device["frees"]), (3, 3))
                self.assertEqual(device["live_bytes"], 0)
                self.assertEqual(device["live_peak_bytes"], 2 * MIB)
                self.assertEqual(device["committed_bytes"], device["committed_peak_bytes"])

    def test_fork_after_a_pool_that_could_not_be_made(self):
        """None of its locks is left for the fork to take."""
        result = self.run_both(PROGRAMS / "forks", "after", allow=["no pool"],
                               SIM_FAIL="cuMemGetAllocationGranularity:1:304")
        self.assertEqual(result.device()["allocs"], 0)

    def test_fork_by_the_driver(self):
        """Inside a call of spillway, which holds locks."""
        self.run_both(PROGRAMS / "forks", "inside")

    def test_context_that_ends_at_exit(self):
        """At exit, nothing is destroyed any more."""
        result = self.run_program(PROGRAMS / "exits", "reset", status=5)
        self.assertEqual(result.stdout, "memory calls: 0\n")

    def contexts_come_and_go(self, kind):
        """For a correct program that ends: any other report is the library's fault."""
        for check in ("off", "on"):
            result = self.run_program(PROGRAMS / "contexts", kind, 800, timeout=60,
                                      SIM_DEVICES=2, CHECK=check)
            self.assertEqual(result.stdout, "done\n")
            self.assertEqual(result.device(1)["live_bytes"], 0)

    def test_own_contexts_come_and_go(self):
        self.contexts_come_and_go("own")

    def test_own_contexts_of_two_threads_come_and_go(self):
        self.contexts_come_and_go("owns")

    def test_primary_contexts_come_and_go(self):
        self.contexts_come_and_go("primary")

    def test_counted_primary_contexts_come_and_go(self):
        self.contexts_come_and_go("counted")

    def test_contexts_of_a_used_device_come_and_go(self):
        self.contexts_come_and_go("shared")

    def test_contexts_come_and_go_beside_page_locked_blocks(self):
        """Page-locked memory goes with the context that it was allocated in: the primary one, or
        where none is active, that of the block."""
        for kind, ordinal in ("shared", 0), ("owns", 1):
            placed = 0
            for check in ("off", "on") * 3:
                result = self.run_program(PROGRAMS / "contexts", kind, 400, timeout=60,
                                          SIM_DEVICES=2, SIM_MEMORY="12MiB", SIM_HOST_NUMA="off",
                                          CHECK=check,
                                          allow=["cannot map host memory", "is full"])
                self.assertEqual(result.stdout, "done\n")
                self.assertEqual(result.device(ordinal)["live_bytes"], 0)
                placed += result.device(ordinal)["placed_bytes"]
            self.assertGreater(placed, 0)

    def test_contexts_come_and_go_beside_a_rule(self):
        """Each pool of a device finds out anew if the host can be used, and then uses it."""
        policy = self.folder / "policy.json"
        policy.write_text('{"version": 1, "rules": [{"name": "host", "match": {"device": 1}, '
                          '"action": {"placement": "host"}}]}')
        for numa in "on", "off":
            result = self.run_program(PROGRAMS / "contexts", "own", 300, timeout=60, POLICY=policy,
                                      SIM_DEVICES=2, SIM_HOST_NUMA=numa,
                                      allow=["cannot map host memory"])
            self.assertEqual(result.stdout, "done\n")
            self.assertEqual(result.device(1)["committed_peak_bytes"], 0)
            self.assertGreater(result.device(1)["host_peak_bytes"], 6 * MIB)

    def test_contexts_with_peer_access_come_and_go(self):
        self.contexts_come_and_go("peer")

    def test_many_contexts(self):
        """Freed memory is used again beside any number of contexts, and after they are gone."""
        for count in (20, 100):
            result = self.run_program(PROGRAMS / "many_contexts", count, timeout=60)
            self.assertEqual(result.device()["live_peak_bytes"], 16 * MIB)
            self.assertLessEqual(result.device()["committed_peak_bytes"], 64 * MIB)

    def test_host_function_that_waits(self):
        self.run_both(PROGRAMS / "host_function", timeout=60)

    def test_host_function_that_waits_on_an_old_driver(self):
        """Without fences of the whole device, memory grows before a call waits for the device."""
        result = self.run_both(PROGRAMS / "host_function", timeout=60,
                               SIM_FAIL="cuCtxRecordEvent:1+:801")
        self.assertEqual(result.device()["host_waits"], 0)

    def test_peer_access(self):
        for words in ((), ("pool",)):
            result = self.run_both(PROGRAMS / "peers", *words, SIM_DEVICES=2)
            self.assertEqual(result.device(0)["allocs"], 2)
        for owner in range(2):
            result = self.run_both(PROGRAMS / "peers", "early", owner, SIM_DEVICES=2)
            self.assertEqual(result.device(owner)["allocs"], 1)

    def test_copies_between_devices(self):
        """A driver does not reach mapped memory of another device without access, unless by a peer
        copy."""
        for peers, words in (("off", []), ("on", []), ("on", ["access"])):
            with self.subTest(peers=peers, words=words):
                log = self.folder / f"log-{peers}-{len(words)}"
                options = {"SIM_DEVICES": 2, "SIM_PEERS": peers}
                result = self.run_both(PROGRAMS / "peer_copies", *words, **options)
                self.assertEqual(result.stdout.count("0, right"), 8 * 6)
                self.run_program(PROGRAMS / "peer_copies", *words, SIM_LOG=log, **options)
                plain = re.findall(r" (cuMemcpy(?:DtoD|2D|3D)?(?:Async)?)(?:_v2)? = 0",
                                   log.read_text())
                peer = re.findall(r" cuMemcpy(?:3D)?Peer(?:Async)? = 0", log.read_text())
                # Device 0 reaches both devices by itself where it may; device 1 only its own.
                self.assertEqual(len(plain), 8 * 3 if words else 0)
                self.assertEqual(len(peer), 8 * 3 if words else 8 * 6)

    def test_copies_between_devices_after_access_was_refused(self):
        """The driver gives no access to memory that is mapped already; it may be asked again."""
        log = self.folder / "log"
        options = {"SIM_DEVICES": 2, "SIM_FAIL": "cuMemSetAccess:7:2", "SIM_LOG": log}
        for words, lines, plain in ((["refused"], ["refused: 2"], 0),
                                    (["refused", "given"], ["refused: 2", "given: 0"], 8 * 3)):
            with self.subTest(words=words):
                result = self.run_program(PROGRAMS / "peer_copies", *words, **options)
                self.assertEqual(result.stdout.split("\n")[:len(lines)], lines)
                self.assertEqual(result.stdout.count("0, right"), 8 * 6)
                copies = re.findall(r" (cuMemcpy(?:DtoD|2D|3D)?(?:Async)?)(?:_v2)? = 0",
                                    log.read_text())
                self.assertEqual(len(copies), plain)

    def test_observe_mode_serves_nothing(self):
        result = self.run_both(PROGRAMS / "door_runtime", MODE="observe",
                               allow=["mode observe", OOM_LINE])
        self.assertEqual(result.stats["mode"], "observe")
        self.assertEqual(result.device()["allocs"], 0)
        self.assertEqual(result.device()["passed_allocs"], 6)
        self.assertEqual(result.device()["passed_bytes"], 0)


class Refused(harness.Case):
    """Whatever the driver refuses leaves the books as they were."""
    OBSERVE = {"MODE": "observe", "LIMIT": "64MiB", "allow": ["mode observe", OOM_LINE]}

    def results(self, *words, **options):
        """The program's lines without what is before the colon, and the device's statistics."""
        result = self.run_program(PROGRAMS / "refused", *words, **options)
        return re.findall(r": (\S+)$", result.stdout, re.MULTILINE), result.device()

    def test_charge_of_a_refused_allocation(self):
        """It is given back: the second allocation has room below the limit."""
        functions = {"alloc": "cuMemAlloc_v2", "async": "cuMemAllocAsync",
                     "pool": "cuMemAllocFromPoolAsync", "pitch": "cuMemAllocPitch_v2"}
        errors = {999: "CUDA_ERROR_UNKNOWN", 2: "CUDA_ERROR_OUT_OF_MEMORY"}
        for how, code in itertools.product(functions, errors):
            with self.subTest(how, code=code):
                lines, device = self.results(how, SIM_FAIL=f"{functions[how]}:1:{code}",
                                             **self.OBSERVE)
                self.assertEqual(lines, [errors[code], "CUDA_SUCCESS", "CUDA_SUCCESS"])
                self.assertEqual(device["ooms"], int(code == 2))
                for name in ("live_bytes", "committed_bytes", "passed_bytes", "charged_bytes"):
                    self.assertEqual(device[name], 0, name)
                self.assertEqual(device["live_peak_bytes"], 40 * MIB)
                self.assertEqual(device["passed_allocs"], 1)

    def test_pitch_beyond_the_limit(self):
        lines, device = self.results("pitch", LIMIT="64MiB", SPILL="off", allow=[OOM_LINE])
        self.assertEqual(lines, ["CUDA_SUCCESS", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_SUCCESS"])
        self.assertEqual(device["live_peak_bytes"], 40 * MIB)

    def test_capture_that_does_not_end(self):
        """It goes on: what is allocated on its stream belongs to it."""
        result = self.run_program(PROGRAMS / "refused", "end", SIM_DEVICES=2)
        self.assertEqual(re.findall(r": (\S+)$", result.stdout, re.MULTILINE),
                         ["CUDA_ERROR_UNKNOWN", *4 * ["CUDA_SUCCESS"], "CUDA_ERROR_ILLEGAL_STATE"])
        self.assertEqual(result.device()["captured_allocs"], 1)
        self.assertEqual(result.device()["allocs"], 1)

    def test_block_that_could_not_be_freed(self):
        """It counts until it is freed."""
        for how, function in (("free", "cuMemFree_v2"), ("free-async", "cuMemFreeAsync")):
            with self.subTest(how):
                lines, device = self.results(how, SIM_FAIL=f"{function}:1:999", **self.OBSERVE)
                self.assertEqual(lines, ["CUDA_ERROR_UNKNOWN", "CUDA_ERROR_OUT_OF_MEMORY",
                                         "CUDA_SUCCESS", "CUDA_SUCCESS", "CUDA_SUCCESS"])
                for name in ("live_bytes", "committed_bytes", "passed_bytes", "charged_bytes"):
                    self.assertEqual(device[name], 0, name)

    def test_context_that_takes_memory_with_it(self):
        """Memory that the driver allocated in a context is gone with it, and its charge."""
        result = self.run_both(PROGRAMS / "refused", "destroy", SIM_DEVICES=2, **self.OBSERVE)
        for device in result.stats["devices"]:
            for name in ("live_bytes", "committed_bytes", "passed_bytes", "charged_bytes"):
                self.assertEqual(device[name], 0, name)

    def test_capture_that_does_not_begin(self):
        """No allocation asks for the capture status of its stream afterwards."""
        lines, device = self.results("begin", SIM_FAIL="cuStreamBeginCapture_v2:1:999")
        self.assertEqual(lines, ["CUDA_ERROR_UNKNOWN"])
        self.assertNotIn("cuStreamIsCapturing", device["driver_calls"])
        self.assertEqual(device["captured_allocs"], 0)

    def test_capture(self):
        """A second begin does not end it. A block is not freed by it."""
        result = self.run_both(PROGRAMS / "refused", "capture", timeout=30)
        self.assertIn("content: 7\n", result.stdout)
        self.assertEqual(result.device()["captured_allocs"], 1)
        self.assertEqual(result.device()["live_peak_bytes"], 2 * 40 * MIB)
        self.assertEqual(result.device()["live_bytes"], 0)

    def test_reset_of_an_unused_device(self):
        """It gets no context for that."""
        log = self.folder / "log"
        self.run_both(PROGRAMS / "refused", "reset", SIM_DEVICES=2)
        self.run_program(PROGRAMS / "refused", "reset", SIM_DEVICES=2, SIM_LOG=log)
        self.assertEqual(log.read_text().count(" cuDevicePrimaryCtxRetain = "), 1)

    def test_two_captures(self):
        """Each goes on when the other ends."""
        result = self.run_both(PROGRAMS / "refused", "captures")
        self.assertEqual(result.device()["captured_allocs"], 2)
        self.assertEqual(result.device()["allocs"], 1)

    def test_handle_of_another_stream(self):
        result = self.run_both(PROGRAMS / "refused", "streams", SIM_DEVICES=2)
        self.assertEqual(result.stdout, "same handle: yes\n")

    def test_context_with_work(self):
        """Its work is done before its memory is taken."""
        for seed in (1, 2, 3):
            result = self.run_program(PROGRAMS / "refused", "destroy", SIM_SEED=seed,
                                      SIM_DEVICES=2)
            self.assertEqual(re.findall(r": (\S+)$", result.stdout, re.MULTILINE),
                             ["CUDA_SUCCESS", "done", *3 * ["CUDA_SUCCESS"]] * 2)
            for device in result.stats["devices"]:
                self.assertEqual(device["live_bytes"], 0)
                self.assertEqual(device["frees"], device["allocs"])


class Limits(harness.Case):
    def fill(self, **options):
        result = self.run_program(PROGRAMS / "limits", allow=[OOM_LINE, "more than device 0 has"],
                                  SPILL="off", **options)
        return result, dict(re.findall(r"^(\w+): (.*)$", result.stdout, re.MULTILINE))

    def test_whole_device(self):
        """The simulator reserves nothing: all memory can be allocated, twice."""
        result, said = self.fill(SIM_MEMORY="4GiB")
        self.assertEqual(said["before"], f"{4 * GIB} free of {4 * GIB}")
        self.assertEqual(said["blocks"], "16")
        self.assertEqual(said["after"], f"{4 * GIB} free of {4 * GIB}")
        self.assertEqual(result.device()["ooms"], 2)
        self.assertEqual(result.device()["live_peak_bytes"], 4 * GIB)

    def test_limit(self):
        for limit in ("1GiB", "25%", str(GIB)):
            result, said = self.fill(SIM_MEMORY="4GiB", LIMIT=limit)
            self.assertEqual(said["before"], f"{GIB} free of {GIB}")
            self.assertEqual(said["blocks"], "4")
            self.assertEqual(said["after"], f"{GIB} free of {GIB}")
            self.assertLessEqual(result.device()["committed_peak_bytes"], GIB)

    def test_limit_above_each_device(self):
        """Each device is named once, however often its pool is made."""
        result = self.run_program(PROGRAMS / "contexts", "own", 20, LIMIT="500GiB",
                                  SIM_DEVICES=2, allow=["more than device . has"])
        self.assertEqual(sorted(re.findall(r"more than device (\d) has", result.stderr)),
                         ["0", "1"])

    def test_request_for_all_that_is_free(self):
        """It gets no memory, and is not counted, unless it is used."""
        for words, peak in (((), 64 << 20), (("use",), GIB)):
            result = self.run_program(PROGRAMS / "all_free", *words, SIM_MEMORY="1GiB", CHECK="on",
                                      SPILL="off")
            said = dict(re.findall(r"^(\w+): (.*)$", result.stdout, re.MULTILINE))
            self.assertEqual(said["before"], str(GIB - (64 << 20)))
            self.assertEqual(said["held"], "0")
            self.assertEqual(said["after"], said["before"])
            self.assertEqual(said["kept"], "5")
            self.assertEqual(said.get("read"), "7" if words else None)
            self.assertEqual(result.device()["live_peak_bytes"], peak)
            self.assertEqual(result.device()["async_live_peak_bytes"], peak)
            self.assertEqual(result.device()["committed_peak_bytes"], peak)

    def test_request_for_all_of_a_full_device(self):
        """A full device reports 2 MiB as free while the host has room; asking for them moves
        nothing."""
        result = self.run_program(PROGRAMS / "all_free", SIM_MEMORY="64MiB", SPILL="auto")
        self.assertIn(f"before: {2 << 20}", result.stdout)
        self.assertEqual(result.device()["spilled_bytes"], 0)
        self.assertEqual(result.device()["host_peak_bytes"], 0)

    def test_line_at_out_of_memory(self):
        """Says how much was asked, held, committed, and what the limit was."""
        result, _ = self.fill(SIM_MEMORY="4GiB", LIMIT="1GiB")
        lines = [line for line in result.said() if "out of memory" in line]
        self.assertEqual(len(lines), 2, result.stderr)
        self.assertIn("256 MiB", lines[0])
        self.assertGreaterEqual(lines[0].count("1 GiB") + lines[0].count("1.00 GiB"), 3, lines[0])

    def test_limit_above_the_device(self):
        result, said = self.fill(SIM_MEMORY="4GiB", LIMIT="8GiB")
        self.assertEqual(said["blocks"], "16")

    def test_odd_memory_size(self):
        _, said = self.fill(SIM_MEMORY=str(3 * GIB + 12345))
        self.assertEqual(said["before"], f"{3 * GIB + 12345} free of {3 * GIB + 12345}")
        self.assertEqual(said["blocks"], "12")


if __name__ == "__main__":
    harness.main()
