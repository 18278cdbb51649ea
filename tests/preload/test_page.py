#!/usr/bin/env python3
"""The page of `spillway report --html`: its data, and what it does in browsers."""
import itertools
import json
import os
import random
import re
import time
import unittest

import browsers
import harness
import recording
from harness import report

PROGRAM = harness.PROGRAMS / "recorded"

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
const wheel = (deltaX, deltaY, shiftKey) => picture.dispatchEvent(new WheelEvent("wheel",
  {...at(0, 0.5), deltaX, deltaY, shiftKey, cancelable: true}));
const part = () => home.querySelector("line.peak").getAttribute("x1");
wheel(0, -100, false);
found.pan = [part()];
for (const act of [[100, 0, false], [-100, 0, true], [0, 100, true]]) {
  wheel(...act);
  found.pan.push(part());
}
home.querySelector(".zoom-whole").click();
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
found.job = [text(".runs tbody tr"), text(".difference-said"), text(".difference tbody tr")];
found.job_name = text("#job h1");
const choices = all(".run");
if (choices.length > 0) {
  choices[1].click();
  found.job.push(text("#title"), text(".difference tbody tr"), text(".run[aria-pressed=true]"));
  choices[0].click();
  found.job.push(text("#title"), text(".held tbody tr").length);
}
const made = document.createElement("pre");
made.id = "found";
made.textContent = JSON.stringify({...found, width: innerWidth,
  loaded: performance.getEntriesByType("resource").length,
  wide_by: document.documentElement.scrollWidth - innerWidth});
document.body.append(made);
parent.postMessage(made.textContent, "*");
</script>"""

class Page(harness.Case):
    """The page of HTML."""

    def page(self, *writers, names=("page.rec", "other.rec")):
        paths = [self.folder / name for _, name in zip(writers, names)]
        for path, writer in zip(paths, writers):
            path.write_bytes(writer.data())
        code, out, err = report(*paths, "--html")
        self.assertEqual((code, err), (0, ""))
        return out.decode()

    @staticmethod
    def runs(page):
        return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>',
                                    page, re.S)[1])["runs"]

    def data(self, page):
        (run,) = self.runs(page)
        return run

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

    def test_options(self):
        """Are shown, without those that say where to write; one explains the advice."""
        writer = recording.Writer()
        for number, text in enumerate(("SPILLWAY_SPILL=off", "SPILLWAY_RECORD=/tmp/<r>",
                                       "SPILLWAY_LIMIT=1GiB", "SPILLWAY_SPILL=" + "x" * 1000)):
            writer.name("option", number, text)
        writer.gauge(1, limit_bytes=64 << 20)
        writer.alloc(9, 1 << 40, 1 << 20, 7)
        writer.event("oom", 10, b"".join(map(recording.encode, (8, 4, 7, 0, 0, 64 << 20))))
        data = self.data(self.page(writer))
        self.assertTrue(dict(data["facts"])["options"].startswith(
            "SPILLWAY_SPILL=off SPILLWAY_LIMIT=1GiB SPILLWAY_SPILL=x"))
        self.assertEqual(data["next"],
                         ["without --spill off, the missing memory can go to the host"])

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

    @staticmethod
    def rank(number, line, size, name="train.py"):
        """A rank that holds 4 MiB at one line and `size` MiB at another."""
        writer = recording.Writer(rank=number)
        writer.name("about", 0, f"python {name}")
        for place, text in {8: "main", 16: f"/home/me/{name}", 24: "same", 32: "other"}.items():
            writer.text(place, text)
        writer.site(5, "cudaMallocAsync", 8, [(16, 24, line)])
        writer.site(7, "cudaMallocAsync", 8, [(16, 32, line + 1)])
        writer.gauge(1, limit_bytes=64 << 20)
        writer.alloc(5, 1 << 40, 4 << 20, 5)
        writer.alloc(9, 1 << 41, size << 20, 7)
        return writer

    def test_several_recordings(self):
        """Each is as it is alone; one that cannot be read is left out."""
        ranks = self.rank(1, 40, 8), self.rank(0, 90, 3)
        both = self.runs(self.page(*ranks))
        for writer, name, found in zip(ranks, ("page.rec", "other.rec"), both):
            self.assertEqual(found, self.data(self.page(writer, names=[name])))
        self.assertEqual([(run["rank"], run["file"], run["devices"][0]["peak"]) for run in both],
                         [(1, "page.rec", 12 << 20), (0, "other.rec", 7 << 20)])
        (self.folder / "none.rec").write_bytes(b"no recording")
        code, out, err = report(self.folder / "none.rec", self.folder / "other.rec", "--html")
        self.assertEqual(code, 0)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("none.rec", err)
        self.assertEqual([run["rank"] for run in self.runs(out.decode())], [0])
        code, _, err = report(self.folder / "page.rec", self.folder / "other.rec", "--json")
        self.assertEqual(code, 2)
        self.assertIn("--json shows one recording (expected --html for 2)", err)

    @unittest.skipUnless(browsers.BROWSERS, "there is no browser")
    def test_several_recordings_in_a_browser(self):
        """The ranks are in order; lines that moved are the same call site."""
        for browser, width in itertools.product(browsers.BROWSERS, (1280, 400)):
            with self.subTest(browser.NAME, width=width):
                found = self.open(browser, (self.rank(1, 40, 8), self.rank(0, 90, 3)), width)
                self.assertLessEqual(found["wide_by"], 0)
                self.assertEqual(found["job_name"], ["2 ranks of python train.py"])
                runs, said, rows, title, then, chosen, again, held = found["job"]
                self.assertEqual(runs, [
                    "rank 07.00 MiBdevice 0: 7.00 MiBfits in 64 MiB, 57 MiB to spare "
                    "(program alone)",
                    "rank 112.00 MiBdevice 0: 12.00 MiBfits in 64 MiB, 52 MiB to spare "
                    "(program alone)"])
                self.assertIn("The peak differs by -5.00 MiB.", said[0])
                self.assertEqual(rows, ["-5.00 MiB3.00 MiB8.00 MiBtrain.py:91 other"])
                self.assertEqual(then, ["5.00 MiB8.00 MiB3.00 MiBtrain.py:41 other"])
                self.assertEqual((title, chosen, again), (["python train.py"], ["rank 1"],
                                                          ["python train.py"]))
                self.assertEqual(held, 2)

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

    def open(self, browser, writers, width, **options):
        writers = writers if isinstance(writers, tuple) else (writers,)
        found, problems = browsers.act(browser, self.page(*writers, **options), ACT, self.folder,
                                       width)
        self.assertEqual(problems, [])
        return found

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
        zoomed, right, left, again = map(float, found["pan"])
        self.assertLess(right, zoomed)
        self.assertAlmostEqual(left, zoomed)
        self.assertAlmostEqual(again, right)
        hidden, said, then = found["tip"]
        self.assertEqual((hidden, then), (False, True))
        self.assertRegex(said, r"^0.001 s: 15.00 MiB live; 4.00 MiB gradients$")

    def check_blocks(self, found):
        rows, said, chosen, released, of_layer, said_of_layer = found["blocks"]
        self.assertEqual(len(rows), 3)
        self.assertRegex(rows[0], r"^8.00 MiBtrain.py:39 forward .*\(activations\)from 0.000 s to "
                                  r"0.001 s \(0.001 s\)0x7f0000000000$")
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
                found = self.open(browser, self.hostile(), 1280)
                self.assertEqual(found["loaded"], 0)
                self.assertIn("<script>alert(1)</script>", found["head"]["facts"][0])

    @unittest.skipUnless(browsers.BROWSERS, "there is no browser")
    def test_hostile_names_of_files_in_a_browser(self):
        name = "<img src=x onerror=alert(1)>.rec"
        evil = "</script><script>throw 1</script>.py"
        found = self.open(browsers.BROWSERS[0], (self.rank(-1, 9, 5, evil), self.hostile()), 1280,
                          names=(name, "other.rec"))
        self.assertTrue(found["job"][0][0].startswith(name), found["job"])
        self.assertTrue(any(evil.rpartition("/")[2] in row for row in found["job"][2]))


class AfterRun(harness.Case):
    """--report and --open of a command that starts a program."""

    def start(self, *flags, program=(PROGRAM, 300), status=0, **env):
        done = self.run_command([harness.COMMAND, "sim", "--memory", "4GiB", *flags, "--",
                                 *program], harness.environment(False, False) | env)
        self.assertEqual(done.status, status, done.stderr)
        return done.stderr

    def opener(self):
        """A folder with an xdg-open that says what it was given, and then waits."""
        folder = self.folder / "bin"
        folder.mkdir()
        program = folder / "xdg-open"
        program.write_text(f"""#!/bin/sh
echo "$1:$LD_PRELOAD:$SPILLWAY_RUN_DIR" > {self.folder}/opened.tmp
mv {self.folder}/opened.tmp {self.folder}/opened
exec sleep 60
""")
        program.chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}", "DISPLAY": ":9"}

    def test_page_after_the_run(self):
        page = self.folder / "r.html"
        said = self.start("--report", page)
        self.assertIn(f"spillway: report: {page}\n", said)
        (run,) = Page.runs(page.read_text())
        verdict = re.search("verdict: (.*)", said)[1]
        self.assertEqual(run["verdict"], verdict)
        self.assertEqual(run["next"][-1], re.search("next: (.*)", said)[1])
        facts = dict(run["facts"])
        self.assertEqual((facts["command"], facts["card"]),
                         ("recorded 300", "NVIDIA H100 80GB HBM3, simulated"))
        self.assertEqual(facts["exit code"], "0")
        code, out, _ = report(self.folder / "r-0.rec", "--html")
        self.assertEqual(code, 0)
        self.assertEqual(dict(Page.runs(out.decode())[0]["facts"])["exit code"], "not known")
        self.start("--report", page)  # replaces the page

    def test_percent_in_the_name(self):
        """It is no directive of the recording's name."""
        page = self.folder / "50%p.html"
        self.start("--report", page)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"50%p.html", "50%p-0.rec"})

    def test_own_recording(self):
        page, record = self.folder / "page", self.folder / "own.rec"
        self.start("--report", page, "--record", record)
        self.assertEqual(Page.runs(page.read_text())[0]["file"], "own.rec")
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"page", "own.rec"})

    def test_every_rank(self):
        page = self.folder / "r.html"
        self.start("--report", page, "--world", 4, "--rank", "0,2")
        self.assertEqual([run["rank"] for run in Page.runs(page.read_text())], [0, 2])

    def test_failed_run(self):
        """The page is written, and the exit code is the command's."""
        page = self.folder / "r.html"
        said = self.start("--report", page, program=("sh", "-c", f"{PROGRAM} 300; exit 3"),
                          status=3)
        self.assertIn(f"spillway: report: {page}\n", said)
        (run,) = Page.runs(page.read_text())
        self.assertEqual((run["verdict"], run["tone"]),
                         (re.search("verdict: (.*)", said)[1], "bad"))
        self.assertEqual(run["next"], ["read the output of the command itself"])
        self.assertEqual(dict(run["facts"])["exit code"], "3")

    def test_no_device_used(self):
        page = self.folder / "r.html"
        said = self.start("--report", page, program=("true",))
        self.assertIn("no report: no process recorded memory of a device", said)
        self.assertFalse(page.exists())

    def test_opened(self):
        """Outside of spillway's environment, and nothing waits for it."""
        page = self.folder / "r.html"
        said = self.start("--report", page, "--open", **self.opener())
        self.assertIn(f"spillway: report: {page}\n", said)
        opened = self.folder / "opened"
        while not opened.exists():
            time.sleep(0.01)
        self.assertEqual(opened.read_text(), f"{page}::\n")

    def test_not_opened(self):
        page, env = self.folder / "r.html", self.opener()
        for other, why in (({"DISPLAY": ""}, "there is no display"),
                           ({"PATH": "/nowhere", "DISPLAY": ":9"}, "there is no xdg-open"),
                           ({"SUDO_UID": "1000"}, "root opens nothing for another user")):
            if "SUDO_UID" in other and os.geteuid() != 0:
                continue
            said = self.start("--report", page, "--open", **env | other)
            self.assertIn(f"spillway: report: {page} (not opened: {why})\n", said)
        self.assertFalse((self.folder / "opened").exists())

    def test_bad_usage(self):
        """Is said before the program starts; a file that is no page is kept."""
        other = self.folder / "train.py"
        other.write_text("print()\n")
        for flags, why in ((["--report", other], "is no page of spillway"),
                           (["--open"], "expected --report FILE too"),
                           (["--report", "x", "--no-pool"], "--no-pool makes none"),
                           (["--report", "x", "--compare"], "--compare makes none"),
                           (["--report", self.folder / "no/x"], "there is no folder for it")):
            said = self.start(*flags, program=("touch", self.folder / "started"), status=2)
            self.assertIn(why, said)
        self.assertEqual(other.read_text(), "print()\n")
        self.assertFalse((self.folder / "started").exists())


if __name__ == "__main__":
    unittest.main()
