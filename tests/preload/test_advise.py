#!/usr/bin/env python3
"""`spillway advise`, of recordings made by hand, in which the best choice is known."""
import itertools
import json
import pathlib
import re
import subprocess
import sys
import unittest

import browsers
import harness
import recording
from harness import COMMAND, MIB

BASE = 0x7f0000000000
# Stands behind the page's own script.
ACT = """<script>
const all = name => [...document.querySelectorAll(name)];
const place = (dot, name) => Number(dot.getAttribute(name));
const made = document.createElement("pre");
made.id = "found";
made.textContent = JSON.stringify({
  dots: all(".dot").map(dot => [place(dot, "x1"), place(dot, "y1")]),
  titles: all(".dot title").map(title => title.textContent),
  budget: all(".budget").map(made => place(made, "y1"))[0],
  rows: all(".ways tbody tr").map(row => row.textContent), width: innerWidth,
  wide_by: document.documentElement.scrollWidth - innerWidth});
document.body.append(made);
parent.postMessage(made.textContent, "*");
</script>"""
WEIGHTS, STATE, ACTIVATION = 10, 20, 30  # lines of the script that hold 64 MiB each
UNUSED = 40  # a site
GRADIENT = 50
USES = {WEIGHTS: 3, STATE: 2, ACTIVATION: 4}  # in a step
STEPS = 8

# Holds ten blocks of 8 MiB, and fills each of them eight times.
FAILS_WITH_A_POLICY = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, blocks = ctypes.c_void_p(), [ctypes.c_uint64() for _ in range(10)]
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
for block in blocks:
    if cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(8 << 20)) != 0:
        sys.exit(1)
for _ in range(8):
    for block in blocks:
        cuda.cuMemsetD8Async(block, 0, ctypes.c_size_t(8 << 20), None)
cuda.cuCtxSynchronize()
sys.exit("SPILLWAY_POLICY" in os.environ)
"""


class Script(recording.Writer):
    """A training: two blocks that stay, and one that comes and goes in each step. `unused`: and
    one from the line of the state, which is never used."""

    def __init__(self, uses=USES, size=64 * MIB, unused=False):
        super().__init__()
        self.now, self.size = 1000, size
        self.name("about", 0, "python train.py")
        for number, text in (8, "main"), (16, "/home/me/train.py"), (24, "train"), (32, "<module>"):
            self.text(number, text)
        for line in USES:
            self.site(line, "cudaMallocAsync", 8, [(16, 24, line), (16, 32, 99)])
        for line in WEIGHTS, STATE:
            self.alloc(self.tick(), self.block(line), size, line, stream=1)
        if unused:
            self.site(UNUSED, "cudaMallocAsync", 8, [(16, 24, STATE), (16, 32, 98)])
            self.alloc(self.tick(), self.block(UNUSED), size, UNUSED, stream=1)
        for _ in range(STEPS):
            self.step(uses)

    def tick(self):
        self.now += 100000  # 10 ms
        return self.now

    def block(self, line):
        return BASE + line * self.size

    def step(self, uses):
        self.alloc(self.tick(), self.block(ACTIVATION), self.size, ACTIVATION, stream=1)
        for line, count in (uses or {}).items():
            for _ in range(count):
                self.use(self.tick(), self.block(line))
        self.free(self.tick(), self.block(ACTIVATION), stream=1)


class Training(recording.Writer):
    """Gradients and, in the first step, three blocks of state. A gradient ends with its step, or
    (`late`) two steps later, or (`kept`) there is one that never does."""

    def __init__(self, late=False, kept=False):
        super().__init__()
        self.now, self.waiting = 1000, []
        self.name("about", 0, "python train.py")
        self.name("thread", 0, "main")
        self.name("thread", 1, "pt_autograd_0")
        for number, text in (8, "main"), (16, "/home/me/train.py"), (24, "train"), (32, "<module>"):
            self.text(number, text)
        for line in ACTIVATION, STATE, GRADIENT:
            self.site(line, "cudaMallocAsync", 8, [(16, 24, line), (16, 32, 99)])
        for step in range(STEPS):
            self.take(ACTIVATION, ACTIVATION)
            self.give(ACTIVATION, thread=1)
            if step == 0 or not kept:
                self.take(GRADIENT + step, GRADIENT, thread=1)
                self.waiting.append(GRADIENT + step)
            for number in range(3) if step == 0 else ():
                self.take(STATE + number, STATE)
            while not kept and len(self.waiting) > (2 if late else 0):
                self.give(self.waiting.pop(0))

    def take(self, block, line, thread=0):
        self.now += 1000
        self.alloc(self.now, BASE + block * 64 * MIB, 64 * MIB, line, stream=1, thread=thread)

    def give(self, block, thread=0):
        self.now += 1000
        self.free(self.now, BASE + block * 64 * MIB, stream=1, thread=thread)


class Model(recording.Writer):
    """A model of equal blocks, of which the recording has the passes. A pass allocates 32 MiB that
    it saves for backward, 16 MiB that it frees at once, and 8 MiB that it returns. Each step uses
    all of that once. `stages`: so many blocks are inside each of two further modules, which also
    have passes, and allocate nothing else. `backward`: the recording knows when backward comes to
    a pass."""
    SAVED, TEMPORARY, OUTPUT = 61, 62, 63

    def __init__(self, blocks=4, stages=0, backward=True):
        super().__init__()
        self.now, self.passes, self.backward = 1000, 0, backward
        self.name("about", 0, "python train.py")
        self.name("thread", 0, "main")
        self.name("thread", 1, "pt_autograd_0")
        for number, text in (8, "main"), (16, "/home/me/train.py"), (24, "train"):
            self.text(number, text)
        for line in WEIGHTS, self.SAVED, self.TEMPORARY, self.OUTPUT:
            self.site(line, "cudaMallocAsync", 8, [(16, 24, line)])
        self.take(90, 64, WEIGHTS)
        for _ in range(STEPS):
            numbers = [self.forward(number, stages) for number in range(blocks)]
            for number in reversed(range(blocks)):
                self.back(number, numbers[number])

    def place_of(self, number):
        return BASE + number * 64 * MIB

    def tick(self):
        self.now += 100
        return self.now

    def take(self, number, size, line):
        self.alloc(self.tick(), self.place_of(number), size * MIB, line, stream=1)

    def forward(self, number, stages):
        name = f"blocks.{number}"
        if stages:
            stage = f"stages.{number // stages}"
            name = f"{stage}.{name}"
        if stages and number % stages == 0:
            self.name("mark", 1, f"module {stage}")
        self.name("mark", 1, f"module {name}")
        self.take(3 * number, 32, self.SAVED)
        self.take(3 * number + 1, 16, self.TEMPORARY)
        self.use(self.tick(), self.place_of(3 * number), self.place_of(3 * number + 1))
        self.free(self.tick(), self.place_of(3 * number + 1), stream=1)
        self.take(3 * number + 2, 8, self.OUTPUT)
        own = self.end(name, self.place_of(3 * number + 2))
        outer = None
        if stages and (number + 1) % stages == 0:
            outer = self.end(stage, self.place_of(3 * number + 2))
        return own, outer

    def end(self, name, output):
        self.passes += 1
        self.name("mark", 0, f"module {name}")
        self.name("pass", 0, f"{self.passes:x} {output:x} -")
        return self.passes

    def back(self, number, passes):
        for which in passes if self.backward else ():
            if which is not None:
                self.name("pass", 1, f"{which:x}")
        self.use(self.tick(), self.place_of(3 * number), thread=1)
        for block in 3 * number, 3 * number + 2:
            self.free(self.tick(), self.place_of(block), stream=1, thread=1)


class Advise(harness.Case):
    def advise(self, script, *arguments, budget="132MiB", status=0):
        """What the command says, and the policy that it wrote, or None. In 132 MiB, 128 MiB can be
        live: one of the three blocks has to go."""
        path, output = self.folder / "r.rec", self.folder / "advice.json"
        output.unlink(missing_ok=True)
        path.write_bytes(script.data())
        done = subprocess.run(
            [COMMAND, "advise", path, "--budget", budget, "--output", output, *arguments],
            capture_output=True, text=True, env=harness.environment(False, False), timeout=120,
            check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        if not output.exists():
            return done, None
        subprocess.run([COMMAND, "policy", "check", output], check=True, timeout=120)
        return done, json.loads(output.read_text())

    def advise_without_budget(self, script, *arguments):
        output = self.folder / "advice.json"
        (self.folder / "r.rec").write_bytes(script.data())
        done = subprocess.run(
            [COMMAND, "advise", self.folder / "r.rec", "--output", output, *arguments],
            capture_output=True, text=True, env=harness.environment(False, False), timeout=120,
            check=True)
        return done, json.loads(output.read_text())

    def lines(self, policy):
        return sorted(rule["match"]["python"]["lines"] for rule in policy["rules"])

    def test_the_cheapest_goes(self):
        done, policy = self.advise(Script())
        self.assertEqual(self.lines(policy), [STATE])
        (rule,) = policy["rules"]
        self.assertEqual(rule["action"], {"placement": "host"})
        self.assertEqual(rule["match"]["size"], [{"min": 64 * MIB, "max": 64 * MIB}])
        self.assertIn("64 MiB less on the device at its peak", rule["comment"][0])
        # Two uses of 64 MiB in a step, at 35 of 50 GB/s.
        milliseconds = 2 * 64 * MIB / 35e6
        self.assertIn(f"128 MiB a step over the link, about {milliseconds:.2f} ms",
                      rule["comment"][1])
        self.assertIn("peak on device 0: 192 MiB", done.stdout)
        self.assertIn("at most 128 MiB live on the device, 64 MiB on the host", done.stdout)

    def test_a_part_goes(self):
        """46.5 MiB have to go: 24 granules of the block that is used least."""
        done, policy = self.advise(Script(), budget="150MiB")
        (rule,) = policy["rules"]
        self.assertEqual(rule["match"]["python"]["lines"], STATE)
        self.assertEqual(rule["action"], {"host_share": "74%", "movable": False})
        self.assertIn("48 MiB less on the device at its peak; up to 48 MiB on the host",
                      rule["comment"][0])
        milliseconds = 2 * 48 * MIB / 35e6
        self.assertRegex(done.stdout, rf"48 MiB +96 MiB +{milliseconds:.2f} "
                         r" train.py:20 train \(74% of each block\)")
        self.assertIn("at most 144 MiB live on the device, 48 MiB on the host; 96 MiB a step",
                      done.stdout)

    def test_a_whole_and_a_part_go(self):
        _, policy = self.advise(Script(), budget="100MiB")
        self.assertEqual({rule["match"]["python"]["lines"]: rule["action"]
                          for rule in policy["rules"]},
                         {STATE: {"placement": "host"},
                          WEIGHTS: {"host_share": "49%", "movable": False}})

    def test_small_blocks_go_as_a_whole(self):
        """Of 4 MiB, a part would be one granule or both."""
        done, policy = self.advise(Script({**USES, STATE: 1}, size=4 * MIB), budget="11MiB")
        (rule,) = policy["rules"]
        self.assertEqual(rule["action"], {"placement": "host"})
        self.assertIn("at most 8 MiB live on the device, 4 MiB on the host", done.stdout)

    def test_the_costs_decide(self):
        for cheap in USES:
            with self.subTest(cheap):
                _, policy = self.advise(Script({**{line: 4 for line in USES}, cheap: 1}))
                self.assertEqual(self.lines(policy), [cheap])

    def test_two_go(self):
        done, policy = self.advise(Script({WEIGHTS: 2, STATE: 1, ACTIVATION: 4}), budget="66MiB")
        self.assertEqual(self.lines(policy), [WEIGHTS, STATE])
        self.assertIn("at most 64 MiB live on the device, 128 MiB on the host", done.stdout)

    def test_step_time(self):
        """A step of the recording takes 110 ms, of which the clock says 11 times 10."""
        done, _ = self.advise(Script())
        ratio = (110e-3 + 2 * 64 * MIB / 35e9) / 110e-3
        self.assertIn(f"a step takes {ratio:.2f} times as long", done.stdout)
        done, _ = self.advise(Script(), "--step-time", "2ms")
        self.assertIn("a step takes 2.92 times as long", done.stdout)
        self.assertNotIn("too slowly to train", done.stdout)
        done, policy = self.advise(Script(), "--step-time", "1ms", status=1)
        self.assertIsNone(policy)
        self.assertIn("a step takes 4.8 times as long: the program runs, but too slowly to train.",
                      done.stdout)
        self.assertIn("nothing is written; --slowdown=6 asks for the policy\n", done.stdout)
        _, policy = self.advise(Script(), "--step-time", "1ms", "--slowdown", "6")
        self.assertIsNotNone(policy)
        done, policy = self.advise(Script(), "--step-time", "2ms", "--slowdown", "2.9", status=1)
        self.assertIsNone(policy)
        self.assertIn("more than --slowdown=2.9 allows", done.stdout)

    def modules(self, policy):
        (rule,) = policy["rules"]
        self.assertEqual(rule["action"], {"recompute": True})
        return rule["match"]["module"]

    def test_blocks_are_recomputed(self):
        """The peak of 232 MiB is in the last pass. Each block that is recomputed frees 32 MiB. Its
        pass touches 48 of the 80 MiB that kernels of a block touch in a step. The second half of
        the run begins with one kernel of the step before."""
        done, policy = self.advise(Model(), "--step-time", "10ms", budget="190MiB")
        cost = 2 * 10 * 4 * 48 / (16 * 80 + 32)
        self.assertEqual(self.modules(policy), ["blocks.0", "blocks.1"])
        self.assertIn("peak on device 0: 232 MiB", done.stdout)
        self.assertIn(f"2 of 4 repeated blocks run again in backward ({cost:.2f} ms a step): "
                      "blocks.0 to blocks.1\n", done.stdout)
        self.assertIn("predicted: at most 168 MiB live on the device, 0 B on the host; 0 B a step "
                      f"over the link, {cost:.2f} ms at 50 GB/s: a step takes {1 + cost / 10:.2f} "
                      "times", done.stdout)

    def test_curve(self):
        """In the end, the last pass is the peak, whether or not its block runs again."""
        done, _ = self.advise(Model(), "--step-time", "10ms", budget="190MiB")
        found = re.findall(r"(?m)^ +(\d+) +(\d+) MiB +([\d.]+) times$", done.stdout)
        self.assertEqual(found, [("0", "232", "1.00"), ("1", "200", "1.15"), ("2", "168", "1.29"),
                                 ("3", "136", "1.44")])

    def page(self, *arguments):
        """The page of an advice, and what is on it of the answer."""
        path = self.folder / "page.html"
        self.advise(*arguments, "--report", path, budget="190MiB")
        text = path.read_text()
        data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1]
        return text, json.loads(data)["advice"]

    def test_page(self):
        """It has the curve of the table."""
        _, advice = self.page(Model(), "--step-time", "10ms")
        self.assertEqual([(point["blocks"], point["peak_bytes"] // MIB,
                           round(point["step_ratio"], 2)) for point in advice["curve"]],
                         [(0, 232, 1), (1, 200, 1.15), (2, 168, 1.29), (3, 136, 1.44)])
        self.assertEqual((advice["budget_bytes"], advice["peak_bytes"]), (190 * MIB, 232 * MIB))
        self.assertEqual(advice["recompute"]["predicted"]["device_bytes"], 168 * MIB)
        _, advice = self.page(Script())
        self.assertNotIn("curve", advice)
        self.assertIn("placement", advice)
        (self.folder / "page.html").write_text("another file")
        done, _ = self.advise(Model(), "--report", self.folder / "page.html", status=2)
        self.assertIn("is no page of spillway", done.stderr)

    @unittest.skipUnless(browsers.BROWSERS, "there is no browser")
    def test_page_in_a_browser(self):
        """The curve falls to the right, and the choice lies on it, below the budget."""
        page, _ = self.page(Model(), "--step-time", "10ms")
        plain, _ = self.page(Script())
        for browser, width in itertools.product(browsers.BROWSERS, (1280, 400)):
            with self.subTest(browser.NAME, width=width):
                found, problems = browsers.act(browser, page, ACT, self.folder, width)
                self.assertEqual((problems, found["width"]), ([], width))
                self.assertLessEqual(found["wide_by"], 0)
                curve, (chosen,) = found["dots"][:4], found["dots"][4:]
                self.assertEqual(curve, sorted(curve))
                self.assertEqual(sorted(curve, key=lambda dot: dot[1]), curve)
                self.assertEqual(chosen, curve[2])
                self.assertLess(curve[1][1], found["budget"])
                self.assertLess(found["budget"], curve[2][1])
                self.assertEqual(found["titles"][2], "2 blocks run again: 168 MiB, 1.29 times")
                self.assertEqual(found["rows"],
                                 ["recompute modules, predicted168 MiB0 B1.29 times"])
        found, problems = browsers.act(browsers.BROWSERS[0], plain, ACT, self.folder, 1280)
        self.assertEqual((problems, found["dots"], len(found["rows"])), ([], [], 1))

    def test_slowdown_gives_the_budget(self):
        done, policy = self.advise_without_budget(Model(), "--step-time", "10ms",
                                                  "--slowdown", "1.2")
        self.assertEqual(self.modules(policy), ["blocks.0"])
        self.assertIn("the least memory at 1.20 times the step, by recomputing: a budget of "
                      "216 MiB\n", done.stdout)

    def test_slowdown_without_blocks(self):
        """It gives no budget: nothing is claimed, and nothing written."""
        path = self.folder / "r.rec"
        simulated = Model()
        simulated.name("option", 0, "SPILLWAY_SIM_TIME=on")
        for script, options, why in (
                (Script(), ("--step-time", "10ms"), "can be recomputed (expected --budget"),
                (simulated, (), "can be recomputed, and the time of a step is known (expected")):
            path.write_bytes(script.data())
            done = subprocess.run(
                [COMMAND, "advise", path, "--slowdown", "2", *options], capture_output=True,
                text=True, env=harness.environment(False, False), timeout=120, cwd=self.folder,
                check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertIn(why, done.stderr)
            self.assertFalse((self.folder / "advice.json").exists())

    def test_what_recomputing_leaves_spills(self):
        """All blocks that save memory run again, and 19 MiB more have to go."""
        done, policy = self.advise(Model(), "--step-time", "1ms", "--slowdown", "9",
                                   budget="120MiB")
        self.assertEqual(policy["rules"][0]["match"]["module"],
                         ["blocks.0", "blocks.1", "blocks.2"])
        self.assertEqual(len(policy["rules"]), 1)
        self.assertIn("19.60 MiB do not fit and spill; ", done.stdout)

    def test_layers_of_stages(self):
        """Of two stages, one is too little and both too slow: three of their four blocks."""
        _, policy = self.advise(Model(stages=2), "--step-time", "1ms", budget="150MiB")
        self.assertEqual(self.modules(policy),
                         [f"stages.{number // 2}.blocks.{number}" for number in range(3)])

    def test_passes_without_a_backward(self):
        """It is not known when a block would run again."""
        done, policy = self.advise(Model(backward=False), "--step-time", "10ms", budget="190MiB")
        self.assertNotIn("run again", done.stdout)
        self.assertTrue(all("recompute" not in rule["action"] for rule in policy["rules"]))

    def test_gradients(self):
        """Those that end with their step are none that zero_grad(set_to_none=True) would free,
        although in the first step, which also makes the state, they live for longer."""
        for options, said in (({}, None), ({"late": True}, 128), ({"kept": True}, 64)):
            with self.subTest(options):
                done, _ = self.advise(Training(**options), "--slowdown", "1000",
                                      budget="200MiB")
                self.assertEqual("- gradients: " in done.stdout, said is not None, done.stdout)
                if said is not None:
                    self.assertIn(f"- gradients: {said} MiB of the peak", done.stdout)

    def test_link(self):
        done, _ = self.advise(Script(), "--link", "25GB/s")
        self.assertIn(f"{2 * 64 * MIB / 17.5e6:.2f} ms at 25 GB/s", done.stdout)

    def test_shipped_policies(self):
        """Each one is tried, and its figures are in the table and in the file."""
        done = subprocess.run(
            [COMMAND, "advise", "--budget", "60MiB", "--shipped", "--json", self.folder / "answer",
             "--", harness.PROGRAMS / "sites", "take", "peak"], capture_output=True, text=True,
            env=harness.environment(False, False), timeout=120, check=True, cwd=self.folder)
        shipped = json.loads((self.folder / "answer").read_text())["shipped"]
        names = {path.stem for path in (harness.ROOT / "policies").glob("*.json")}
        self.assertEqual(set(shipped), names - {"observe", "policy.schema"})
        self.assertIn(f"\nspillway: advise: run {len(shipped) + 2} of {len(shipped) + 2}, ",
                      done.stderr)
        for name, figures in shipped.items():
            self.assertRegex(done.stdout, rf"(?m)^  {name} .* MiB ")
            moves = {"half-gpu": (48, 0)}.get(name, (12, 12))
            self.assertEqual((figures["host_bytes"] // MIB, figures["moved_bytes"] // MIB), moves)

    def test_nothing_to_do(self):
        done, policy = self.advise(Script(), budget="200MiB")
        self.assertIsNone(policy)
        self.assertIn("it fits", done.stdout)

    def test_default_is_best(self):
        """Memory that is used all the time: spilling without rules is estimated to cost less."""
        done, policy = self.advise(Script({line: 40 for line in USES}), budget="180MiB")
        self.assertIsNone(policy)
        self.assertIn("spilling without rules is at least as good: nothing is written", done.stdout)

    def test_host_memory(self):
        done, policy = self.advise(Script(), "--host", "32MiB", status=1)
        self.assertIsNone(policy)
        self.assertIn("no rules fit in 32 MiB of host memory", done.stdout)

    def test_nothing_fits(self):
        """The script has a site without any frame, which no rule can name."""
        script = Script()
        script.site(40, "cuMemAlloc", 8, [])
        script.alloc(script.tick(), BASE, 500 * MIB, 40, stream=1)
        done, policy = self.advise(script, budget="150MiB", status=1)
        self.assertIsNone(policy)
        self.assertIn("leaves 500 MiB on the device, 354.50 MiB too much", done.stdout)

    def test_what_is_not_seen_in_use_stays(self):
        """It may be the workspace of a library, whose address no argument names."""
        _, policy = self.advise(Script({WEIGHTS: 2, STATE: 0, ACTIVATION: 4}))
        self.assertEqual(self.lines(policy), [WEIGHTS])

    def test_a_rule_takes_what_it_cannot_tell_apart(self):
        """The line of the state is called from two lines; a rule names the innermost. The other
        block is not seen in use, and counts as used as often."""
        done, policy = self.advise(Script(unused=True), budget="200MiB")
        (rule,) = policy["rules"]
        self.assertEqual(rule["match"]["python"]["lines"], STATE)
        self.assertEqual(rule["action"], {"host_share": "49%", "movable": False})
        self.assertIn("64 MiB less on the device at its peak", rule["comment"][0])
        self.assertIn("at most 192 MiB live on the device, 64 MiB on the host; 128 MiB a step",
                      done.stdout)

    def test_without_uses(self):
        """What outlives a step is taken to be used as often as the rest."""
        done, policy = self.advise(Script(uses=None))
        self.assertEqual(len(policy["rules"]), 1)
        self.assertIn("--record-uses on", done.stdout)

    def test_bad_usage(self):
        for arguments, text in (
                (["r"], "--budget is missing (or --slowdown"),
                (["--budget", "1GiB"], "expected either one FILE"),
                (["r", "--budget", "1"], "not a size of 1 MiB or more"),
                (["r", "--budget", "1KiB"], "not a size of 1 MiB or more"),
                (["r", "--budget", "1GiB", "--slowdown", "0.5"], "not a number of 1 or more"),
                (["r", "--budget", "1GiB", "--", "true"], "expected either one FILE"),
                (["--budget", "1GiB", "--step-time", "5", "--", "true"], "a COMMAND is timed"),
                (["r", "--budget", "1GiB", "--shipped"], "--shipped is for a COMMAND")):
            with self.subTest(arguments):
                done = subprocess.run([COMMAND, "advise", *arguments], capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(text, done.stderr)

    def test_no_recording(self):
        path = pathlib.Path(self.folder) / "none.rec"
        path.write_bytes(b"no recording")
        done = subprocess.run([COMMAND, "advise", path, "--budget", "1GiB"], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is no recording of spillway", done.stderr)

    def test_command_that_fails(self):
        done = subprocess.run([COMMAND, "advise", "--budget", "1GiB", "--", "false"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed with ample memory", done.stderr)

    @unittest.skipIf(harness.SANITIZED, "Python is not built with the sanitizer")
    def test_policy_that_fails(self):
        """The command runs in the budget by spilling, and fails with each policy."""
        done = subprocess.run(
            [COMMAND, "advise", "--budget", "60MiB", "--", sys.executable, "-c",
             FAILS_WITH_A_POLICY], capture_output=True, text=True,
            env=harness.environment(False, False), timeout=120, check=False, cwd=self.folder)
        self.assertIn("the policy does not make it fit: nothing is written", done.stdout)
        runs = re.findall("(?m)^spillway: advise: run (.*?): ", done.stderr)
        self.assertEqual(runs[0], "1 of 3")
        self.assertRegex(",".join(runs[1:]), r"^2 of 3, about \d+ s,3 of 3, about \d+ s$")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipIf(harness.SANITIZED, "true is not built with the sanitizer")
    def test_command_that_uses_no_device(self):
        done = subprocess.run([COMMAND, "advise", "--budget", "1GiB", "--", "true"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("spillway: advise: no device is known to have been used\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
