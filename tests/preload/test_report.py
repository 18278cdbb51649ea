#!/usr/bin/env python3
"""spillway report: what it makes of recordings, good and bad.

    test_report.py --write     writes the expected files anew: look at them before they are kept
"""
import csv
import io
import json
import pathlib
import pickle
import random
import re
import struct
import subprocess
import sys
import time
import unittest

import harness
import recording
from harness import report

GOLDEN = pathlib.Path(__file__).resolve().parent / "data"
FORMS = {"summary": "txt", "json": "json", "table": "txt", "tree": "txt",
         "folded": "folded", "speedscope": "json",
         "perfetto": "json", "rmm-csv": "csv", "memory-viz-json": "json"}
PROGRAM = harness.PROGRAMS / "recorded"
WRAPPERS = harness.SOURCE / "src/cli/recording/wrappers.def"


def golden(form):
    return GOLDEN / f"{form}.{FORMS[form]}"


class Forms(harness.Case):
    """Of a recording made by hand, in which every figure is known."""

    def setUp(self):
        super().setUp()
        self.path = self.folder / "sample.rec"
        self.path.write_bytes(recording.sample().data())

    def form(self, name, *arguments):
        code, out, err = report(self.path, "--" + name, *arguments)
        self.assertEqual((code, err), (0, ""))
        return out

    def test_as_expected(self):
        for form in FORMS:
            with self.subTest(form):
                self.assertEqual(self.form(form).decode(), golden(form).read_text())

    def test_recording_of_the_version_before(self):
        """It does not say how much of a block is on the host: all of it, as in the sample."""
        self.path.write_bytes(recording.sample(version=1).data())
        for form in FORMS:
            with self.subTest(form):
                self.assertEqual(self.form(form).decode(), golden(form).read_text())
        self.path.write_bytes(recording.sample(version=3).data())
        code, _, err = report(self.path)
        self.assertEqual(code, 1)
        self.assertIn("the recording is of another version of spillway", err)

    def test_the_readers_agree(self):
        """The tests' own reader finds the same peak."""
        live, peak = {}, [0, 0]
        for event in recording.Recording(self.path).events():
            key = event["device"], event.get("address")
            if event["kind"] == "alloc" and (event["source"] == "pool" or event["charged"]):
                live[key] = (event["bytes"] + 511) // 512 * 512
            elif event["kind"] == "free":
                live.pop(key, None)
            for device in 0, 1:
                peak[device] = max(peak[device], sum(size for (where, _), size in live.items()
                                                     if where == device))
        found = json.loads(self.form("json"))
        self.assertEqual([device["live_peak_bytes"] for device in found["devices"]], peak)
        for device in found["devices"]:
            self.assertEqual(sum(site["device_peak_bytes"] for site in device["sites"]),
                             device["live_peak_bytes"])

    def test_pickle_has_what_json_has(self):
        """And only what PyTorch's viewer can read of the pickle protocol."""
        code, out, _ = report(self.path, "--memory-viz")
        self.assertEqual(code, 0)
        self.assertEqual(out[:2], b"\x80\x02")
        found = json.loads(json.dumps(pickle.loads(out)))
        self.assertEqual(found, json.loads(self.form("memory-viz-json")))

    def test_snapshot_suits_the_viewer(self):
        snapshot = json.loads(self.form("memory-viz-json"))
        self.assertEqual(len(snapshot["device_traces"]), 2)
        for segment in snapshot["segments"]:
            self.assertEqual(sum(block["size"] for block in segment["blocks"]),
                             segment["total_size"])
            self.assertEqual(segment["blocks"][0]["address"], segment["address"])
        for trace in snapshot["device_traces"]:
            live, times = set(), [entry["time_us"] for entry in trace]
            self.assertEqual(times, sorted(times))
            for entry in trace:
                if entry["action"] == "alloc":
                    live.add(entry["addr"])
                elif entry["action"] == "free_requested":
                    self.assertIn(entry["addr"], live)
                    live.remove(entry["addr"])
                for frame in entry["frames"]:
                    self.assertTrue(frame["name"] is not None and frame["filename"] is not None)

    def test_the_last_events_of_a_snapshot(self):
        snapshot = json.loads(self.form("memory-viz-json", "--max-events", "2"))
        self.assertTrue(snapshot["allocator_settings"]["trace_alloc_overflowed"])
        self.assertEqual([entry["action"] for entry in snapshot["device_traces"][0]], [])
        snapshot = json.loads(self.form("memory-viz-json", "--max-events", "6"))
        self.assertEqual([entry["action"] for entry in snapshot["device_traces"][0]],
                         ["alloc", "alloc", "oom", "free_requested", "free_completed"])

    def test_rmm_by_the_rules_of_its_parser(self):
        rows = list(csv.DictReader(io.StringIO(self.form("rmm-csv").decode())))
        self.assertEqual(list(rows[0]), ["Thread", "Time", "Action", "Pointer", "Size", "Stream"])
        live = set()
        for row in rows:
            self.assertIn(row["Action"], ("allocate", "free", "allocate failure"))
            self.assertRegex(row["Time"], r"^\d\d:\d\d:\d\d\.\d{6}$")
            for name in "Thread", "Size", "Stream":
                int(row[name], 10)
            if row["Action"] == "allocate":
                live.add(int(row["Pointer"], 16))
            elif row["Action"] == "free":
                live.remove(int(row["Pointer"], 16))
            else:
                self.assertEqual(row["Pointer"], "(nil)")
        rows = list(csv.DictReader(io.StringIO(self.form("rmm-csv", "--no-streams").decode())))
        self.assertEqual({row["Stream"] for row in rows}, {"0"})

    def test_speedscope_by_the_rules_of_its_importer(self):
        found = json.loads(self.form("speedscope"))
        for profile in found["profiles"]:
            self.assertEqual((profile["type"], profile["unit"]), ("sampled", "bytes"))
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertEqual(profile["endValue"] - profile["startValue"], sum(profile["weights"]))
            for stack in profile["samples"]:
                self.assertTrue(all(0 <= frame < len(found["shared"]["frames"])
                                    for frame in stack))
        outermost = found["profiles"][0]["samples"][0][0]
        self.assertEqual(found["shared"]["frames"][outermost]["name"], "<module>")

    def test_perfetto_keeps_the_peak(self):
        found = json.loads(self.form("perfetto"))["traceEvents"]
        live = [event["args"]["bytes"] for event in found if event["name"] == "device 0 live"]
        (device, _) = json.loads(self.form("json"))["devices"]
        self.assertEqual(max(live), device["live_peak_bytes"])
        self.assertTrue({event["ph"] for event in found} <= set("CXiMbe"))
        for event in found:
            self.assertTrue(event["ph"] == "M" or event["ts"] > 1.6e15)

    def test_collapsed_stacks(self):
        lines = self.form("folded").decode().splitlines()
        for line in lines:
            self.assertRegex(line, r"^[^;]+(;[^;]+)* \d+$")
        self.assertTrue(any("train.py:39 forward;functional.py:2159 soft,max" in line
                            for line in lines))

    def test_tree_adds_up(self):
        """A branch holds what its stacks hold, the largest first."""
        writer = recording.Writer()
        for number, text in {8: "main", 16: "/home/me/a.py", 24: "run"}.items():
            writer.text(number, text)
        for number, line in {5: 30, 7: 20, 9: 10}.items():
            writer.site(number, "cudaMallocAsync", 8, [(16, 24, line), (16, 24, 1)])
        for count, (site, size) in enumerate(((5, 3), (7, 5), (9, 1))):
            writer.alloc(1000 + count, 0x7f0000000000 + (count << 34), size << 30, site, stream=1)
        self.path.write_bytes(writer.data())
        rows = [re.fullmatch(r"  +(\S+ \S+) +(\d+\.\d) %  ( *)(.*)", line).groups()
                for line in self.form("tree").decode().splitlines()[1:]]
        self.assertEqual(rows, [("9 GiB", "100.0", "", "a.py:1 run"),
                                ("5 GiB", "55.5", "", "a.py:20 run"),
                                ("3 GiB", "33.3", "", "a.py:30 run"),
                                ("1 GiB", "11.1", "", "a.py:10 run")])

    def test_native_frames_on_request(self):
        """Stacks have Python's frames, without those by which a module calls its forward(). Those
        of a site without Python are native in any case."""
        writer = recording.Writer()
        for number, text in {8: "main", 16: "/home/me/a.py", 24: "run", 40: "_call_impl",
                             32: "/lib/torch/nn/modules/module.py", 48: "_apply"}.items():
            writer.text(number, text)
        writer.site(5, "cudaMallocAsync", 8, [(16, 24, 30), (32, 40, 2), (32, 48, 3), (16, 24, 1)],
                    native=(100, 200))
        writer.site(7, "cudaMallocAsync", 8, [], native=(300,))
        for site in 5, 7:
            writer.alloc(1000, 0x7f0000000000 + (site << 34), site << 20, site, stream=1)
        self.path.write_bytes(writer.data())
        short = ["?", "a.py:1 run;module.py:3 _apply;a.py:30 run"]
        full = ["?", "a.py:1 run;module.py:3 _apply;module.py:2 _call_impl;a.py:30 run;?;?"]
        wrapped = ["?", "a.py:1 run;module.py:3 _apply;module.py:2 _call_impl;a.py:30 run"]
        for flags, stacks in (((), short), (("--wrappers",), wrapped), (("--native",), full)):
            lines = self.form("folded", *flags).decode().splitlines()
            self.assertEqual(sorted(line.rpartition(" ")[0] for line in lines), stacks)
            found = json.loads(self.form("speedscope", *flags))
            frames = sum(len(stack.split(";")) for stack in stacks)
            self.assertEqual(len(found["shared"]["frames"]), frames + 1) # the last: "not known"
            for form in "tree", "memory-viz-json":
                self.assertEqual("_call_impl" in self.form(form, *flags).decode(), flags != (),
                                 form)
        self.assertIn("_call_impl", self.form("json").decode())

    def test_every_wrapper(self):
        """Is left out, by its function and by the end of its path; another function is not."""
        rows = re.findall(r'^SPW_WRAPPER\("(.*)", "(.*)"\)$', WRAPPERS.read_text(), re.M)
        self.assertGreater(len(rows), 15)
        writer = recording.Writer()
        writer.text(8, "f")
        frames = []
        for place, (file, function) in enumerate(rows):
            writer.text(100 + 8 * place, "/lib/" + file.lstrip("/"))
            writer.text(1000 + 8 * place, function)
            frames.append((100 + 8 * place, 1000 + 8 * place, place))
        for number, text in {2000: "/home/me/contextlib.py.py", 2008: "inner"}.items():
            writer.text(number, text)
        writer.site(5, "cudaMallocAsync", 8, [(2000, 2008, 7), *frames, (2000, 8, 1)])
        writer.alloc(1000, 0x7f0000000000, 5 << 20, 5, stream=1)
        self.path.write_bytes(writer.data())
        name = "contextlib.py.py"
        self.assertEqual(self.form("folded").decode(), f"{name}:1 f;{name}:7 inner {5 << 20}\n")
        self.assertEqual(self.form("folded", "--wrappers").decode().count(";"), len(rows) + 1)

    def test_classes_of_modules(self):
        """The innermost one is in the name; a site without any follows one that has some."""
        writer = recording.Writer()
        for number, text in {8: "main", 16: "/home/me/a.py", 24: "run", 32: "Net/Block"}.items():
            writer.text(number, text)
        writer.site(5, "cudaMallocAsync", 8, [(16, 24, 30)], modules=32)
        writer.site(7, "cudaMallocAsync", 8, [(16, 24, 20)])
        for site in 5, 7:
            writer.alloc(1000, 0x7f0000000000 + (site << 34), site << 20, site, stream=1)
        self.path.write_bytes(writer.data())
        self.assertEqual(re.findall(r"a\.py:.*", self.form("table").decode()),
                         ["a.py:20 run", "a.py:30 run in Block"])

    def test_output(self):
        out = self.folder / "out"
        self.assertEqual(report(self.path, "--json", "--output", out)[0], 0)
        self.assertEqual(out.read_text(), golden("json").read_text())
        code, _, err = report(self.path, "--json", "--output", out)
        self.assertEqual((code, "File exists" in err), (2, True))

    def test_bad_usage(self):
        for arguments, said in ((["--json", "--folded"], "only one form"),
                                (["--top", "x"], "--top"), (["--jso"], "--jso")):
            code, _, err = report(self.path, *arguments)
            self.assertEqual((code, said in err), (2, True), err)
        code, _, err = report(self.folder / "none")
        self.assertEqual((code, "No such file" in err), (1, True), err)


class Bad(harness.Case):
    """Files from anywhere: an answer or a message, never a crash."""

    def check(self, data, forms=("summary", "memory-viz", "html")):
        path = self.folder / "bad.rec"
        path.write_bytes(data)
        for form in forms:
            code, _, err = report(path, "--" + form)
            self.assertIn(code, (0, 1), err)
        return err

    def test_other_files(self):
        for data in b"", b"{}", bytes(5000), b"SPWREC\r\n", random.Random(1).randbytes(9000):
            self.check(data)

    def test_cut_off(self):
        data = recording.sample().data()
        for length in range(4096, len(data), 29):
            self.check(data[:length], ["summary"])
        whole = recording.sample()
        whole.complete = 1
        (self.folder / "x").write_bytes(whole.data())
        self.assertNotIn(b"cut off", report(self.folder / "x")[1])
        for length in (3000, 4096):  # within the header, and between two blocks
            (self.folder / "x").write_bytes(whole.data()[:length])
            code, out, _ = report(self.folder / "x")
            self.assertEqual(code, 0)
            self.assertRegex(out, rb"the file was cut off: (\d+) of \1 events are missing\n")
            self.assertNotIn(b"no memory was allocated", out)

    def test_damaged(self):
        """A wrong checksum ends the reading, and is said."""
        draw, data = random.Random(2), recording.sample().data()
        for _ in range(60):
            damaged = bytearray(data)
            damaged[draw.randrange(4096, len(data))] ^= 1 << draw.randrange(8)
            self.check(bytes(damaged), ["summary"])
        damaged = bytearray(data)
        damaged[4096 + 100] ^= 1
        (self.folder / "x").write_bytes(damaged)
        _, out, _ = report(self.folder / "x")
        self.assertIn(b"byte 4096: the block is damaged (its checksum is wrong)", out)

    def test_more_on_the_host_than_there_is(self):
        writer = recording.Writer()
        writer.alloc(1000, 0x7f0000000000, 4096, 0, host=4097)
        (self.folder / "x").write_bytes(writer.data())
        self.assertIn(b"block 0: an event is damaged", report(self.folder / "x")[1])

    def test_nonsense_with_right_checksums(self):
        draw = random.Random(3)
        for _ in range(60):
            writer = recording.sample()
            for block in writer.blocks:
                for _ in range(draw.randrange(1, 6)):
                    block[1][draw.randrange(len(block[1]))] = draw.randrange(256)
            self.check(writer.data())

    def test_text_for_terminals(self):
        writer = recording.Writer()
        writer.name("about", 0, b"\x1b[31mred\x9b\xff")
        (self.folder / "x").write_bytes(writer.data())
        for form in "summary", "json":
            _, out, _ = report(self.folder / "x", "--" + form)
            self.assertNotIn(b"\x1b", out)


class Recorded(harness.Case):
    """Recordings of programs."""

    def test_compressed_after_the_run(self):
        path, stats = self.folder / "r", self.folder / "stats"
        done = self.run_command([harness.COMMAND, "sim", "--record", path, "--stats", stats, "--",
                                 PROGRAM, 3000], harness.environment(False, False))
        self.assertEqual(done.status, 0, done.stderr)
        data, device = path.read_bytes(), json.loads(stats.read_text())["devices"][0]
        self.assertEqual(struct.unpack_from("<H", data, 4096 + 20)[0], 1)
        code, out, _ = report(path, "--json")
        found = json.loads(out)
        self.assertEqual((code, found["complete"]), (0, True))
        for name in ("live_peak_bytes", "live_bytes", "allocs", "frees", "committed_peak_bytes",
                     "steals"):
            self.assertEqual(found["devices"][0][name], device[name], name)
        labels = [site["label"] for site in found["devices"][0]["sites"]]
        self.assertTrue(any("churn" in label or "recorded" in label for label in labels), labels)
        self.assertEqual(found["events"], recording.Recording(path).written)
        self.assertLess(len(data) / found["events"], 12)

    def test_killed_at_any_moment(self):
        """Every form opens what is there."""
        draw = random.Random(20)
        for number in range(20):
            path = self.folder / f"r{number}"
            env = harness.environment(RECORD=path, SUMMARY="off")
            with subprocess.Popen([PROGRAM, "0", "2"], env=env,
                                  stdout=subprocess.DEVNULL) as child:
                while not path.exists() and child.poll() is None:
                    time.sleep(0.001)
                time.sleep(draw.uniform(0, 0.2))
                child.kill()
            if path.stat().st_size < 4096 or not path.read_bytes().startswith(b"SPWREC"):
                continue # killed before the header was there
            for form in (*FORMS, "memory-viz", "html"):
                code, out, err = report(path, "--" + form, *(["--max-events", "500"]
                                                             if "viz" in form else []))
                self.assertEqual((code, err), (0, ""), form)
            code, out, _ = report(path, "--json")
            found = json.loads(out)
            self.assertEqual((found["problem"], found["unknown_frees"]), ("", 0))

    def test_help(self):
        self.assertTrue(re.match(r"usage: spillway report FILE", self.run_command(
            [harness.COMMAND, "report", "--help"], harness.environment(False, False)).stdout))


def write():
    GOLDEN.mkdir(exist_ok=True)
    path = GOLDEN / "sample.rec"
    path.write_bytes(recording.sample().data())
    for form in FORMS:
        golden(form).write_bytes(report(path, "--" + form)[1])
    path.unlink()


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        unittest.main()
