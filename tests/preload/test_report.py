#!/usr/bin/env python3
"""spillway report: what it makes of recordings, good and bad.

    test_report.py --write     writes the expected files anew: look at them before they are kept
"""
import csv
import html
import io
import itertools
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

import browsers
import harness
import recording

GOLDEN = pathlib.Path(__file__).resolve().parent / "data"
FORMS = {"summary": "txt", "json": "json", "table": "txt", "tree": "txt",
         "folded": "folded", "speedscope": "json",
         "perfetto": "json", "rmm-csv": "csv", "memory-viz-json": "json"}
PROGRAM = harness.PROGRAMS / "recorded"
WRAPPERS = pathlib.Path(__file__).resolve().parents[2] / "src/cli/recording/wrappers.def"


def report(path, *arguments):
    """(exit code, stdout as bytes, stderr)."""
    done = subprocess.run([harness.COMMAND, "report", path, *arguments], capture_output=True,
                          env=harness.environment(False, False), timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


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


# Stands behind the page's own script; what it finds goes where the test reads it.
ACT = """<script>
addEventListener("error", event => document.body.append("FAILED " + event.message));
const all = (name, from) => [...(from || document).querySelectorAll(name)];
const text = name => all(name).map(found => found.textContent);
const picture = document.querySelector("svg.memory"), home = picture.closest("section");
const note = () => ({now: home.querySelector(".now").textContent,
  unused: home.querySelector(".unused").textContent,
  rows: all(".held tbody tr", home).map(row => row.textContent),
  flame: all("[role=treeitem]", home).map(item => [item.textContent, item.style.width]),
  layers: all("polygon", home).length});
const press = (where, key) =>
  where.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const box = picture.getBoundingClientRect(), found = {};
found.first = note();
found.head = {outcome: text(".outcome")[0], next: text(".next"), tone:
  document.querySelector(".verdict").className, facts: text(".facts div")};
found.lines = all("line.cursor, line.peak", home).map(line => line.getAttribute("class"));
home.querySelector(".by-site").click();
found.site = note();
picture.dispatchEvent(new MouseEvent("click", {clientX: box.right - 1, clientY: box.top + 9}));
found.end = note();
home.querySelector(".to-peak").click();
found.peak = note();
press(picture, "ArrowLeft");
found.before = note();
press(picture, "p");
const frames = all("[role=treeitem]", home);
(frames.find(item => item.textContent.startsWith("forward")) || frames[0]).click();
found.wide = note();
press(document.activeElement, "ArrowDown");
found.below = document.activeElement.textContent;
press(document.activeElement, "Escape");
found.narrow = note();
const toggle = home.querySelector(".wrappers");
found.wrappers = [text("[role=treeitem]").filter(name => name.startsWith("_call_impl")).length];
if (toggle) toggle.click();
found.wrappers.push(text("[role=treeitem]").filter(name => name.startsWith("_call")).length);
if (toggle) toggle.click();
const at = (x, y) => { /* the page may have scrolled */
  const box = picture.getBoundingClientRect();
  return {clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true};
};
const pointer = (type, x, y, target) => (target || picture).dispatchEvent(new PointerEvent(type,
  {...at(x, y), button: 0, pointerType: "mouse"}));
const ends = () => all(".axis span", home).map(end => end.textContent).filter((_, i) => i !== 1);
found.zoom = [ends()];
picture.dispatchEvent(new WheelEvent("wheel", {...at(1, 0.5), deltaY: -100,
  cancelable: true}));
found.zoom.push(ends());
pointer("pointerdown", 0.5, 0.5);
pointer("pointermove", 0.75, 0.5);
pointer("pointerup", 1, 0.5, window);
picture.dispatchEvent(new MouseEvent("click", at(1, 0.3)));
found.zoom.push(ends());
home.querySelector(".zoom-whole").click();
found.zoom.push(ends());
press(picture, "+");
press(picture, "0");
found.zoom.push(ends());
press(picture, "p");
home.querySelector(".by-category").click();
pointer("pointermove", 0.68, 0.99);
found.tip = [home.querySelector(".tip").hidden, home.querySelector(".tip").textContent];
pointer("pointerleave", 0, 0);
found.tip.push(home.querySelector(".tip").hidden);
const rows = () => all(".block-rows tbody tr", home).map(row => row.textContent);
found.blocks = [rows(), text(".blocks-said")[0]];
const address = home.querySelector(".address");
if (address) address.click();
found.blocks.push(all(".lived", home).length);
if (address) address.click();
found.blocks.push(all(".lived", home).length);
picture.dispatchEvent(new MouseEvent("click", at(0.68, 0.99)));
found.blocks.push(rows(), text(".blocks-said")[0]);
home.querySelector(".to-peak").click();
const search = home.querySelector(".search");
search.value = "SOFT";
search.dispatchEvent(new Event("input"));
found.search = {hits: home.querySelector(".hits").textContent, rows: rows().length,
  found: text(".found"), others: all(".not-found", home).length};
search.value = "";
search.dispatchEvent(new Event("input"));
home.querySelector(".by-site").click();
found.growth = [text(".growth"), text(".growing tbody tr"), all(".end", home).length];
for (const button of all(".ooms button", home)) {
  button.click();
  found.oom = note();
}
for (const name of ["ooms", "parts", "rules", "sites"]) {
  found[name] = text(`.${name} tbody tr`);
}
for (const name of ["note", "lane-name", "key", "step title", "part title", "moved title",
  "oom title", "committed", "limit", "level"]) {
  found[name] = text("." + name);
}
const made = document.createElement("pre");
made.id = "found";
made.textContent = JSON.stringify({...found, width: innerWidth,
  loaded: performance.getEntriesByType("resource").length,
  wide_by: document.documentElement.scrollWidth - innerWidth});
document.body.append(made);
parent.postMessage(made.textContent, "*");
</script>"""

# Chromium's windows are at least 500 pixels wide; a frame may be narrower.
FRAME = """<!doctype html><iframe src="page.html" width="{}" height="900"></iframe><script>
addEventListener("message", event => {{
  const made = document.createElement("pre");
  made.id = "found";
  made.textContent = event.data;
  document.body.append(made);
}});
</script>"""


class Page(harness.Case):
    """The page of HTML."""

    def page(self, writer):
        path = self.folder / "page.rec"
        path.write_bytes(writer.data())
        code, out, err = report(path, "--html")
        self.assertEqual((code, err), (0, ""))
        return out.decode()

    def data(self, page):
        found = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>',
                                     page, re.S)[1])
        return found["runs"][0]

    @staticmethod
    def held(device):
        """Bytes by call site at each moment; a moment has those that changed."""
        now = [0] * len(device["sites"])
        for moment in device["moments"]:
            for site, size in zip(moment["held"][::2], moment["held"][1::2]):
                now[site] = size
            yield list(now)

    def test_data(self):
        data = self.data(self.page(recording.sample()))
        for device, peak in zip(data["devices"], (15 << 20, 2 << 20)):
            self.assertEqual(device["peak"], peak)
            self.assertEqual(max(moment["live"] for moment in device["moments"]), peak)
            for moment, held in zip(device["moments"], self.held(device)):
                self.assertEqual(sum(held), moment["live"])
                self.assertEqual(sum(moment["by"]), moment["live"])
                self.assertLessEqual(moment["pooled"], moment["live"])
                self.assertEqual(len(moment["by"]), len(data["categories"]))

    def test_events(self):
        data = self.data(self.page(recording.sample()))
        self.assertEqual(data["steps"], [{"us": 500, "number": 1, "count": 1}])
        self.assertEqual([(part["name"], part["spans"], part["peak"][0]) for part in data["parts"]],
                         [("eval?1", [[500, 900]], (12 << 20) + 1024),
                          ("save", [[900, 1400]], 15 << 20)])
        (oom,) = data["ooms"]
        self.assertEqual((oom["us"], oom["missing"], oom["limit"]), (1000, 5 << 20, 64 << 20))
        self.assertEqual([(rule["number"], rule["name"], rule["allocs"], rule["host_bytes"])
                          for rule in data["rules"]], [(1, "weights", 1, 4 << 20), (0, "", 5, 0)])
        (moved,) = [row for row in data["devices"][0]["traffic"] if row.get("moves")]
        self.assertEqual((moved["to_host"], moved["to_device"], moved["held_back_us"]),
                         (8 << 20, 0, 250))
        self.assertIn("4 marks of parts and steps are missing", " ".join(data["notes"]))

    def verdict(self, *acts, limit=64 << 20, complete=1):
        """The verdict of a run with these allocations, refusals (None, bytes) and moves."""
        writer = recording.Writer()
        writer.complete = complete
        if limit:
            writer.gauge(1, limit_bytes=limit)
        for number, (act, size, *flags) in enumerate(acts):
            if act == "oom":
                writer.event("oom", 10 + number, b"".join(map(recording.encode, (
                    size, size // 4, 7, 0, 0, limit))))
            elif act == "alloc":
                writer.alloc(10 + number, number + 1 << 40, size, 7, *flags)
                writer.gauge(10 + number, committed_bytes=size)
            else:
                writer.gauge(10 + number, host_bytes=size, **dict(flags))
        found = self.data(self.page(writer))
        return found["verdict"], found["tone"], found["next"]

    def test_verdict(self):
        """In the words of the verdict of a simulated run."""
        alloc, mib = ("alloc", 40 << 20), 1 << 20
        for acts, verdict, tone, advice in (
                ([], "none: no memory of a device was allocated", "none", None),
                ([alloc], "fits in 64 MiB, 24 MiB to spare (program alone)", "good",
                 "nothing is missing; spillway fit tells which cards it fits on"),
                ([alloc, ("host", 9 * mib, ("spilled_bytes", 30 * mib))],
                 "does not fit in 64 MiB, but runs by spilling 9 MiB", "fair",
                 "30 MiB moved in the whole run; spillway advise may cut that"),
                ([(*alloc, 1 << 4, 9 * mib), ("host", 9 * mib)],
                 "fits in 64 MiB, with 9 MiB on the host by the policy", "good",
                 "drop the policy: it fits too"),
                ([alloc, ("oom", 48 * mib)], "does not fit in 64 MiB: 12 MiB missing for 48 MiB",
                 "bad", "spillway sim --compare finds the size that it needs"),
                ([("oom", 48 * mib), alloc], "went on in 64 MiB, but not with all that it asked "
                 "for", "fair", "spillway sim --compare finds the size that it needs"),
                ([("oom", 40 * mib), alloc], "fits in 64 MiB, 24 MiB to spare (program alone)",
                 "good", "nothing is missing; spillway fit tells which cards it fits on")):
            with self.subTest(verdict):
                said, found, advised = self.verdict(*acts)
                self.assertEqual((said, found), (verdict, tone))
                self.assertEqual(advised, [advice] if advice else [])
        self.assertIn("is not recorded", self.verdict(alloc, limit=0)[0])
        self.assertIn("has no end", self.verdict(alloc, complete=0)[0])

    def test_needs_no_network(self):
        page = self.page(recording.sample()).replace("http://www.w3.org/2000/svg", "")
        self.assertIn("default-src 'none'", page)
        self.assertIsNone(re.search(r"https?:|\b(src|href)\s*=|@import|url\(", page))

    def test_peaks_are_kept(self):
        """Of more events than windows, one block is live for one event only."""
        writer = recording.Writer()
        for number in range(4000):
            size = 1 << 30 if number == 1234 else 1 << 20
            writer.alloc(20 * number + 1, 1 << 40, size, 0)
            writer.free(20 * number + 2, 1 << 40)
        (device,) = self.data(self.page(writer))["devices"]
        self.assertLess(len(device["moments"]), 2000)
        (top,) = [moment for moment in device["moments"] if moment["live"] == 1 << 30]
        self.assertEqual(top["us"], device["peak_us"])

    def test_commit_of_the_peak(self):
        """Is written behind the allocation that it is for."""
        writer = recording.Writer()
        writer.gauge(1, committed_bytes=2 << 20)
        writer.alloc(5, 1 << 40, 8 << 20, 0)
        writer.gauge(6, committed_bytes=10 << 20)
        writer.free(7, 1 << 40)
        writer.gauge(8, committed_bytes=0)
        (device,) = self.data(self.page(writer))["devices"]
        top = max(device["moments"], key=lambda moment: moment["live"])
        self.assertEqual((top["live"], top["committed"]), (8 << 20, 10 << 20))

    def test_site_of_another_moment(self):
        """Is shown, though a hundred others hold more at the peak."""
        writer = recording.Writer()
        writer.text(8, "f")
        for site in range(1, 102):
            writer.site(site, "cuMemAlloc", 8, [(8, 8, site)])
        writer.alloc(1, 1 << 41, 90 << 20, 101)
        writer.free(9, 1 << 41)
        for site in range(1, 101):
            writer.alloc(1000 + site, site << 30, 1 << 20, site)
        (device,) = self.data(self.page(writer))["devices"]
        self.assertLess(len(device["sites"]), 50)
        self.assertEqual(max(max(held) for held in self.held(device)), 90 << 20)

    def test_size(self):
        """Is bounded, whatever the number of devices."""
        for devices in 8, 64:
            page = self.page(self.crowd(devices))
            self.assertLess(len(page), 2 << 20)
            self.assertEqual(len(self.data(page)["devices"]), devices)

    def test_size_of_names(self):
        """Is bounded too; what is no longer told apart is said to be so."""
        writer = recording.Writer()
        writer.name("about", 0, b"\x01" * 1000)
        for site in range(1, 161):
            writer.begin(site)
            for line in range(24):
                writer.text(8 * (site * 24 + line), f"{site}.{line}".rjust(400, "\x01"))
            writer.site(site, "cuMemAlloc", 8,
                        [(8 * (site * 24 + line), 8 * (site * 24 + line), 1) for line in range(24)])
            writer.alloc(site, site << 30, 1 << 20, site)
        page = self.page(writer)
        self.assertLess(len(page), 2 << 20)
        frames = self.data(page)["frames"]
        self.assertIn("other functions, too many to name", frames)
        self.assertEqual(len(frames), len(set(frames)))

    @staticmethod
    def crowd(devices):
        """Many events of every kind, from many sites with deep stacks."""
        writer = recording.Writer(devices=devices)
        writer.text(8, "function_of_a_long_name")
        writer.text(16, "/home/somebody/project/package/module.py")
        for site in range(1, 200):
            writer.site(site, "cudaMallocAsync", 8, [(16, 8, site + line) for line in range(60)])
        draw = random.Random(4)
        for number in range(20000):
            device = number % devices
            if number % 500 == 0:
                writer.begin(number * 90)
            writer.alloc(number * 90, number << 32, draw.randrange(1 << 30), draw.randrange(1, 200),
                         device=device)
            if number >= 8 * devices:
                writer.free(number * 90, number - 8 * devices << 32, device=device)
            if number % 50 == 0:
                writer.gauge(number * 90, device=device, committed_bytes=number << 20)
                writer.name("mark", number // 50 % 2, "part")
                writer.event("step", number * 90, recording.encode(number))
                writer.event("move", number * 90, recording.encode(number) * 3, device=device)
        return writer

    def hostile(self):
        writer = recording.Writer()
        writer.name("about", 0, b"</script><script>alert(1)</script><!--")
        writer.text(8, b"</script><img src=x onerror=alert(2)>\xff\x1b")
        writer.site(1, "cuMemAlloc", 8, [(8, 8, 1)])
        writer.alloc(5, 1 << 40, 512, 1)
        return writer

    def test_text_stays_text(self):
        page = self.page(self.hostile())
        self.assertEqual(page.count("<script"), 2)
        self.assertEqual(page.count("</script"), 2)
        self.assertNotIn("<img", page)
        self.assertEqual(self.data(page)["title"], "</script><script>alert(1)</script><!--")

    def open(self, browser, writer, width):
        path = self.folder / "page.html"
        path.write_text(self.page(writer).replace("</body>", ACT + "</body>"))
        if width < 500:
            path = self.folder / "frame.html"
            path.write_text(FRAME.format(width))
        page, complaints = browser.read(path, self.folder, max(width, 500))
        self.assertEqual(complaints, [])
        self.assertNotIn("FAILED", page.rpartition("<pre id=")[2])
        return json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', page, re.S)[1]))

    @unittest.skipUnless(browsers.BROWSERS, "there is no browser")
    def test_in_a_browser(self):
        for browser, width in itertools.product(browsers.BROWSERS, (1280, 400)):
            with self.subTest(browser.NAME, width=width):
                found = self.open(browser, recording.sample(), width)
                self.assertEqual(found["width"], width)
                self.assertLessEqual(found["wide_by"], 0)
                self.assertEqual(found["loaded"], 0)
                self.check_head(found["head"])
                self.check_memory(found)
                self.check_events(found)
                self.check_flames(found)
                self.check_pointer(found)
                self.check_blocks(found)

    def check_head(self, head):
        self.assertEqual(head["outcome"],
                         "verdict: does not fit in 64 MiB: 5 MiB missing for 60 MiB")
        self.assertEqual(head["tone"], "verdict bad")
        self.assertEqual(head["next"][0],
                         "next: spillway sim --compare finds the size that it needs")
        self.assertEqual(head["facts"][:4], ["commandpython train.py", "cardNVIDIA H200, simulated",
                                             "date2023-11-14 22:13:20 UTC", "hostnode7"])

    def check_memory(self, found):
        first, peak = found["first"], found["peak"]
        self.assertIn("15.00 MiB live (the peak)", first["now"])
        self.assertEqual(first["rows"], ["8.00 MiB53.3 %activations", "4.00 MiB26.7 %gradients",
                                         "3.00 MiB20.0 %unknown"])
        self.assertEqual((first["layers"], peak["layers"]), (3, 4))
        self.assertEqual(found["lines"], ["cursor", "peak"])  # the last is drawn over the others
        self.assertEqual(found["site"], peak)
        self.assertIn("15.00 MiB live (the peak)", peak["now"])
        self.assertRegex(peak["rows"][0],
                         r"^8.00 MiB53.3 %train.py:39 forward via functional.py:2159")
        self.assertEqual(len(peak["rows"]), 3)
        self.assertEqual(peak["unused"], "16.00 MiB committed on the device, 8.00 MiB on the host; "
                                         "12.00 MiB of that free (50.0 %)")
        self.assertIn("4.00 MiB live", found["end"]["now"])
        self.assertNotIn("the peak", found["before"]["now"])
        self.assertEqual(len(found["committed"]), 1)
        self.assertIn("The limit, 64.00 MiB, is above the picture", found["key"][0])

    def check_events(self, found):
        self.assertEqual(found["ooms"][0][:7], "0.001 s")
        self.assertIn("60.00 MiB5.00 MiB15.00 MiB64.00 MiBtrain.py:39", found["ooms"][0])
        self.assertEqual(found["oom"]["now"], found["peak"]["now"])
        self.assertEqual(found["oom title"], ["out of memory after 0.001 s: 60.00 MiB"])
        self.assertEqual(found["parts"], ["10.000 s12.00 MiB, 2.00 MiBeval?1",
                                          "10.001 s15.00 MiB, 2.00 MiBsave (not ended)"])
        self.assertEqual(found["step title"][0], "step 1 after 0.001 s")
        self.assertEqual(found["part title"][0], "eval?1: 0.001 s to 0.001 s")
        self.assertEqual(found["rules"][0], "weights14.00 MiB4.00 MiB in 14.00 MiB")
        self.assertRegex(found["rules"][1], "^no rule5")
        self.assertIn("8.00 MiB to the host, 0 B back", found["moved title"][0])
        self.assertTrue(any("4 marks of parts" in note for note in found["note"]))
        self.assertEqual(len(found["sites"]), 4 + 1)

    def check_flames(self, found):
        names = dict(found["peak"]["flame"])
        self.assertEqual(names["all"], "100%")
        self.assertIn("<module>  train.py:80", names)
        self.assertTrue(names["forward  train.py:39"].startswith("53.3"))
        self.assertEqual(dict(found["wide"]["flame"])["forward  train.py:39"], "100%")
        self.assertEqual(found["below"], "soft;max  functional.py:2159")
        self.assertEqual(found["narrow"]["flame"], found["peak"]["flame"])

    def check_pointer(self, found):
        """Wheel, drag, buttons and keys zoom; hovering reads the curve."""
        self.assertEqual(found["zoom"], [
            ["0.000 s", "0.001 s"], ["0.000 s", "0.001 s"], ["0.001 s", "0.001 s"],
            ["0.000 s", "0.001 s"], ["0.000 s", "0.001 s"]])
        hidden, said, then = found["tip"]
        self.assertEqual((hidden, then), (False, True))
        self.assertRegex(said, r"^0.001 s: 15.00 MiB live; 4.00 MiB gradients$")

    def check_blocks(self, found):
        rows, said, chosen, released, of_layer, said_of_layer = found["blocks"]
        self.assertEqual(len(rows), 3)
        self.assertRegex(rows[0], r"^8.00 MiB0x7f0000000000from 0.000 s to 0.001 s \(0.001 s\)"
                                  r"train.py:39 forward .*\(activations\)$")
        self.assertEqual((chosen, released), (1, 0))
        self.assertIn("3 of 3 blocks, the largest first. This page has the largest 4 of 4 blocks.",
                      said)
        self.assertEqual(len(of_layer), 1)
        self.assertIn("(gradients)", of_layer[0])
        self.assertTrue(said_of_layer.startswith("Of gradients: 1 of 1 blocks"))
        self.assertEqual(found["search"], {
            "hits": "Found: 8.00 MiB of this moment (53.3 %)", "rows": 1,
            "found": ["soft;max  functional.py:2159"], "others": 5})

    def test_blocks(self):
        """The largest blocks, and all that were live at the peak, are kept."""
        writer = recording.Writer()
        for number in range(3000):  # each lives for one event; the largest is the last
            writer.alloc(20 * number + 1, number << 30, (number + 1) << 10, 0)
            writer.free(20 * number + 2, number << 30)
        for number in range(40):
            writer.alloc(60000 + number, 1 << 50 | number << 30, 1 << 20, 0)
        for number in range(40):
            writer.free(60100 + number, 1 << 50 | number << 30)
        writer.alloc(60200, 1 << 51, 1 << 10, 0)  # live at the end, and not at the peak
        (device,) = self.data(self.page(writer))["devices"]
        self.assertEqual(device["blocks_in_all"], 3041)
        self.assertEqual([block[1] for block in device["blocks_at_peak"]], [1 << 20] * 40)
        self.assertEqual([block[1] >> 10 for block in device["blocks"]],
                         list(range(3000, 2000, -1)))
        self.assertEqual(device["blocks"][0][0], f"0x{2999 << 30:x}")
        self.assertEqual({block[4] for block in device["blocks_at_peak"]},
                         set(range(6010, 6014)))
        for block in device["blocks"]:
            self.assertEqual(block[3:5], [2 * (block[1] // 1024 - 1)] * 2)

    @staticmethod
    def training(steps, leak):
        """Steps of an optimizer that nobody marks; `leak` bytes are kept in each."""
        writer = recording.Writer()
        writer.name("about", 1, "tensor")
        for number, text in {8: "main", 16: "/home/me/train.py", 24: "loss", 32: "step",
                             40: "/lib/torch/optim/adam.py", 48: "pt_autograd_0"}.items():
            writer.text(number, text)
        writer.site(5, "cudaMallocAsync", 8, [(16, 24, 39)])
        writer.site(7, "cudaMallocAsync", 8, [(40, 32, 9), (16, 32, 42)])
        writer.site(9, "cudaMallocAsync", 48, [])
        for number in range(steps):
            time, at = 1000 * number + 10, number << 33
            writer.alloc(time, at, leak or 1 << 20, 5, stream=1)
            writer.alloc(time + 10, at + (1 << 32), 2 << 20, 9, stream=1, thread=1)
            writer.free(time + 20, at + (1 << 32), stream=1, thread=1)
            writer.alloc(time + 30, at + (1 << 32), 2 << 20, 7, stream=1)
            writer.free(time + 40, at + (1 << 32), stream=1)
            if not leak:
                writer.free(time + 50, at, stream=1)
        return writer

    def test_steps_unasked(self):
        found = self.data(self.page(self.training(12, 0)))
        self.assertEqual(found["steps_kind"], "optimizer steps")
        self.assertGreaterEqual(sum(step["count"] for step in found["steps"]), 11)
        (device,) = found["devices"]
        self.assertEqual((device["growth"], device["growing"]), (0, []))

    def test_growth(self):
        (device,) = self.data(self.page(self.training(12, 3 << 20)))["devices"]
        self.assertEqual(device["growth"], 3 << 20)
        self.assertEqual(device["growing"], [[3 << 20, "train.py:39 loss"]])
        number, _, live = device["step_ends"][-1]
        self.assertEqual(live, number * 3 << 20)

    @unittest.skipUnless(browsers.BROWSERS, "there is no browser")
    def test_growth_in_a_browser(self):
        for leak, said, rows in ((0, "No memory grows from step to step", 0),
                                 (3 << 20, "Memory grows by 3.00 MiB a step.", 1)):
            with self.subTest(leak):
                found = self.open(browsers.BROWSERS[0], self.training(12, leak), 1280)
                self.assertIn(said, found["growth"][0][0])
                self.assertEqual(len(found["growth"][1]), rows)
                self.assertGreater(found["growth"][2], 8)

    @unittest.skipUnless(browsers.BROWSERS, "there is no browser")
    def test_wrappers_in_a_browser(self):
        writer = recording.Writer()
        for number, text in {8: "main", 16: "/home/me/a.py", 24: "run", 40: "_call_impl",
                             32: "/lib/torch/nn/modules/module.py"}.items():
            writer.text(number, text)
        writer.site(5, "cudaMallocAsync", 8, [(16, 24, 30), (32, 40, 2), (16, 24, 1)])
        writer.alloc(1000, 1 << 40, 1 << 20, 5)
        for browser in browsers.BROWSERS:
            with self.subTest(browser.NAME):
                self.assertEqual(self.open(browser, writer, 1280)["wrappers"], [0, 1])

    @unittest.skipUnless(browsers.BROWSERS, "there is no browser")
    def test_limit_near_the_peak_in_a_browser(self):
        writer = recording.Writer()
        writer.gauge(1, limit_bytes=12 << 20, committed_bytes=9 << 20)
        writer.alloc(5, 1 << 40, 8 << 20, 0)
        for browser in browsers.BROWSERS:
            with self.subTest(browser.NAME):
                found = self.open(browser, writer, 1280)
                self.assertEqual(len(found["limit"]), 1)
                self.assertIn("Dashes: the limit, 12.00 MiB", found["key"][0])
                self.assertEqual(found["level"], ["4.00 MiB", "8.00 MiB", "12.00 MiB"])

    @unittest.skipUnless(browsers.BROWSERS, "there is no browser")
    def test_hostile_text_in_a_browser(self):
        for browser in browsers.BROWSERS:
            with self.subTest(browser.NAME):
                self.assertEqual(self.open(browser, self.hostile(), 1280)["loaded"], 0)


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
