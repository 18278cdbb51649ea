#!/usr/bin/env python3
"""The parts of the benchmark `spill` on tiny cases that were worked out by hand.

    test_spill.py BUILD
"""
import pathlib
import sys
import tempfile
import unittest

import bench
import plans
import spill_log
import spill_model

UNIT = 512
MIB = 1 << 20


def plan_of(text):
    """"a x 2" allocates 2 units for x, "f x" frees it, "u 10 x+ y" is a kernel of 10 ns that writes
    x and reads y; lines end with a semicolon."""
    plan = [("s",)]
    for line in filter(None, (part.split() for part in text.split(";"))):
        if line[0] == "a":
            plan.append(("a", line[1], int(line[2]) * UNIT))
        elif line[0] == "f":
            plan.append(("f", line[1]))
        else:
            plan.append(("u", int(line[1]),
                         [(word.rstrip("+"), word.endswith("+")) for word in line[2:]]))
    return plan


# Three of one unit, room for two. After c is written, a is needed next and b last.
THREE = """a a 1; u 10 a+; a b 1; u 10 b+; a c 1; u 10 c+; u 10 a; f a; u 10 c; f c; u 10 b; f b"""


def moved(steps):
    return steps[1].in_bytes // UNIT, steps[1].out_bytes // UNIT


class Models(unittest.TestCase):
    def test_belady(self):
        """For c, b goes, whose next use is the farthest; it comes back when a is free."""
        steps = spill_model.belady(plan_of(THREE), 2 * UNIT)
        self.assertEqual(moved(steps), (1, 1))

    def test_next_uses(self):
        """Freed memory is not used again, even by a buffer with the same name."""
        plan = plan_of("a x 1; u 1 x+; u 1 x; f x; a x 1; u 1 x+; f x")
        self.assertEqual(list(filter(None, spill_model.next_uses(plan))),
                         [{"x": 3}, {"x": spill_model.NEVER}, {"x": spill_model.NEVER}])

    def test_lru(self):
        """For c, a goes; for a, b; b comes back when a and c are free."""
        steps = spill_model.lru(plan_of(THREE), 2 * UNIT)
        self.assertEqual(moved(steps), (2, 2))
        self.assertEqual(steps[1].moves, 4)

    def test_all_fits(self):
        for policy in (spill_model.belady, spill_model.lru, spill_model.static):
            steps = policy(plan_of(THREE), 3 * UNIT)
            self.assertEqual(steps[1], spill_model.Step(compute_ns=60))

    def test_static(self):
        """c is on the host for good; a kernel writes it, and one reads it."""
        steps = spill_model.static(plan_of(THREE), 2 * UNIT)
        self.assertEqual(moved(steps), (0, 0))
        self.assertEqual(steps[1].link_bytes, 2 * UNIT)
        self.assertAlmostEqual(steps[1].stall_ns, UNIT / 52.8 + UNIT / 35)

    def test_static_again(self):
        """Freed memory makes room for later buffers, not for those on the host."""
        plan = plan_of("a a 2; a b 1; u 1 b+; f a; u 1 b; a c 2; u 1 c+; f b; f c")
        steps = spill_model.static(plan, 2 * UNIT)
        self.assertEqual(steps[1].link_bytes, 2 * UNIT)

    def test_several_at_once(self):
        """A kernel's buffers stay while it makes room: d takes the place of b, not of a."""
        plan = plan_of("a a 1; a b 1; u 1 a+; u 1 b+; a d 1; u 1 d+ a; u 1 b; f a; f b; f d")
        steps = spill_model.lru(plan, 2 * UNIT)
        self.assertEqual(moved(steps), (1, 2))

    def test_too_large(self):
        """A kernel that uses more than there is room for uses the rest where it is."""
        plan = plan_of("a a 2; a b 2; u 1 a+ b+; f a; f b")
        steps = spill_model.belady(plan, 3 * UNIT)
        self.assertEqual(moved(steps), (0, 0))
        self.assertEqual(steps[1].link_bytes, 2 * UNIT)

    def test_steps(self):
        """Buffers that stay alive count in the next step."""
        plan = plan_of("a w 1; u 1 w+") + plan_of("a x 2; u 5 x+; f x; u 1 w")
        steps = spill_model.belady(plan, 2 * UNIT)
        self.assertEqual([(step.in_bytes, step.out_bytes) for step in steps],
                         [(0, 0), (0, 0), (UNIT, UNIT)])
        self.assertEqual(steps[2].compute_ns, 6)

    def test_cost_of_a_move(self):
        """3 MiB each way: two granules, each mapped, given access and unmapped twice; fences."""
        step = spill_model.Step(compute_ns=7)
        step.move(3 * MIB, 3 * MIB)
        self.assertEqual((step.moves, step.calls), (2, 16))
        self.assertAlmostEqual(
            step.ns, 7 + 2 * (3 * MIB / 50 + 4 * (2000 + 56000 + 30000) + 5000))

    def test_bound(self):
        """Compute, or the busier direction of the link."""
        self.assertEqual(spill_model.Step(100, 30, 1, 1, 4000, 3000).bound_ns(), 100)
        self.assertEqual(spill_model.Step(100, 30, 1, 1, 4000, 6000).bound_ns(), 120)
        self.assertEqual(spill_model.Step(100, 30, 1, 1, 7000, 6000).bound_ns(), 140)

    def test_floor(self):
        """b leaves while c is written and comes back while c is read: 10 ns each, for 10.24."""
        plan = plan_of(THREE) + [("s",)]
        self.assertAlmostEqual(spill_model.floor_ns(plan, 3 * UNIT), 60)
        self.assertAlmostEqual(spill_model.floor_ns(plan, 2 * UNIT), 60.48)
        self.assertAlmostEqual(spill_model.floor_ns(plan, 2 * UNIT, beside=False), 60 + 2 * 10.24)

    def test_floor_both_ways(self):
        """For y, x leaves as soon as it was used, but for a unit, that of z; after y there are 10
        ns until it is used again."""
        steps = 3 * plan_of("u 10 x+; a y 8; u 10 y+; f y; u 10 z")
        plan = plan_of("a x 8; a z 1; u 1 x+ z+") + steps + [("s",)]
        out, back = 7 * UNIT / 50, 8 * UNIT / 50 - 10
        self.assertAlmostEqual(spill_model.floor_ns(plan, 9 * UNIT), 30 + out + back)

    def test_mean(self):
        mean = spill_model.mean([spill_model.Step(10, 0, 2), spill_model.Step(20, 1, 4)])
        self.assertEqual(mean, spill_model.Step(15, 0.5, 3))


class Plans(unittest.TestCase):
    def read(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.csv"
            path.write_text("id,lower,upper,size\n" + "\n".join(rows))
            return plans.of_trace(path)

    def test_uses(self):
        """Written at lower, read at upper - 1; a kernel takes what passes until the next use."""
        plan = self.read(["0,0,4,700", "1,4,10,512"])
        self.assertEqual(plan, [
            ("a", 0, 700), ("u", 3 * plans.TICK_NS, [(0, True)]),
            ("u", plans.TICK_NS, [(0, False)]),
            ("f", 0), ("a", 1, 512), ("u", 5 * plans.TICK_NS, [(1, True)]),
            ("u", plans.TICK_NS, [(1, False)]), ("f", 1)])
        self.assertEqual(plans.live_peak(plan), 1024)
        self.assertEqual(plans.compute_ns(plan), 10 * plans.TICK_NS)

    def test_spanning(self):
        """Two that span the step are used in order in its first half, in reverse in its second."""
        plan = self.read(["0,0,100,1", "1,0,100,1", "2,40,50,1"])
        order = [[buffer for buffer, _ in act[2]] for act in plan if act[0] == "u"]
        self.assertEqual(order, [[0, 1], [0], [1], [2], [2], [1], [0], [0, 1]])

    def test_evaluation(self):
        """Two rounds of five steps and an evaluation. At most the weights, and the activations of a
        step, are live; an evaluation has two of half the size, and frees all that it allocates."""
        plan = plans.of_evaluation(2)
        marks = [at for at, act in enumerate(plan) if act == ("s",)]
        self.assertEqual(len(marks), 1 + 2 * 6)
        self.assertEqual(plans.live_peak(plan), plans.LAYERS * (plans.WEIGHT + plans.ACTIVATION))
        evaluation = plan[marks[5] + 1:marks[6]]
        self.assertEqual(plans.live_peak(evaluation), plans.ACTIVATION)
        kinds = [act[0] for act in plan]
        self.assertEqual(kinds.count("a") - kinds.count("f"), plans.LAYERS)

    def test_many(self):
        """Nine at once are two kernels."""
        plan = self.read([f"{row},0,1,1" for row in range(9)])
        kernels = [act for act in plan if act[0] == "u"]
        self.assertEqual([len(uses) for _, _, uses in kernels], [8, 1])
        self.assertEqual([ns for _, ns, _ in kernels], [plans.TICK_NS // 2] * 2)

    def test_write(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan"
            plans.write([("a", 1, 5), ("u", 7, [(1, False), (2, True)]), ("f", 1)], path)
            self.assertEqual(path.read_text(), "a 1 5\nu 7 2 1 2\nf 1\n")


LOG = """1 1 1 cuLaunchKernel = 0 kernel=spw_touch_step t=0..3000
1 1 2   ran 2.1 kernel spw_touch_step t=3000..5000 device=0 in=0 out=0
1 1 3 cuMemMap = 0 va=1 t=5000..7000
1 1 4   ran 2.2 kernel spw_touch_use t=6000..9000 device=9 in=35000 out=0
1 1 5 cuEventQuery = 600 t=7000..8000
1 1 6 cuEventQuery = 0 t=8000..12000
1 1 7   ran 3.1 copy t=9000..11000 device=5 in=0 out=100
1 1 8   ran 3.2 copy t=9000..10000 device=10 in=0 out=0
1 1 9   ran 2.3 kernel spw_touch_step t=15000..17000 device=0 in=0 out=0
1 1 10   ran 3.3 copy t=17500..18500 device=5 in=70 out=0
1 1 11   ran 2.4 kernel spw_touch_step t=20000..22000 device=0 in=0 out=0
1 1 12 cuMemMap = 0 va=1 t=23000..25000
"""


PROGRAM = """1 1 1 cuMemAllocAsync = 0 size=700 stream=1 -> 0x1000 t=0..2000
1 1 2 cuMemAlloc_v2 = 0 size=512 -> 0x2000 t=0..2000
1 1 3 cuMemAllocAsync = 2 size=900 stream=1 t=0..2000
1 1 4 cuLaunchKernel = 0 kernel=spw_touch_step item=1.1 t=0..3000
1 1 5   uses 1.2 r0x1200+16 w0x2000+512
1 1 5   uses 1.2 r0x2200+16
1 1 5 cuLaunchKernel = 0 kernel=k item=1.2 t=0..3000
1 1 6   ran 1.1 kernel spw_touch_step t=3000..5000 device=0 in=0 out=0
1 1 7 cuMemFreeAsync = 0 0x1000 stream=1 t=9000..9000
1 1 8   ran 1.2 kernel k t=5000..8000 device=9 in=0 out=0
1 1 9 cuMemFree_v2 = 0 0x2000 t=9000..9000
1 1 10 cuMemFree_v2 = 0 0 t=9000..9000
"""


class Log(unittest.TestCase):
    def test_plan(self):
        """Buffers by number; 0x2200 is behind the end of the second. Failures are left out."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "log"
            path.write_text(PROGRAM)
            plan = plans.of_log(path)
        self.assertEqual(plan, [("a", 1, 700), ("a", 2, 512), ("s",),
                                ("u", 3000, [(1, False), (2, True)]), ("f", 1), ("f", 2)])

    def test_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "log"
            path.write_text(LOG)
            first, second = spill_log.read(path)
        self.assertEqual(first, spill_log.Step(
            ns=12000, copies=1, out_bytes=100, out_ns=2000, link_bytes=35000, link_ns=1000.0,
            kernel_ns=5000, calls=1, calls_ns=2000, waits=1, waits_ns=3000))
        self.assertEqual(first.idle_ns, 7000)
        self.assertEqual(second, spill_log.Step(
            ns=5000, copies=1, in_bytes=70, in_ns=1000, kernel_ns=2000))


class Program(unittest.TestCase):
    """`play` on the simulated GPU, without spillway."""

    PLAN = plan_of("a 1 100; u 50000 1+; a 2 1; u 30000 2+ 1; f 1;"
                   "a 3 9; u 20000 3+ 2; f 2; f 3")[1:]

    @unittest.skipUnless((bench.PROGRAMS / "play").exists(), "built without benchmarks")
    def test_play(self):
        """The driver's log gives the plan back, and steps of the length that was planned: a mark
        takes 2 us, and after the wait the host makes one allocation and one launch before the
        device has something to do."""
        with tempfile.TemporaryDirectory() as folder:
            path, log = pathlib.Path(folder) / "plan", pathlib.Path(folder) / "log"
            plans.write(self.PLAN, path)
            run = bench.simulate([bench.PROGRAMS / "play", 2, path], bench.GIB, ["--no-pool"],
                                 SIM_TIME="on", SIM_LOG=log)
            self.assertTrue(run.ran, run.stderr)
            found, steps = plans.of_log(log), spill_log.read(log)
        self.assertEqual(self.renumbered(found[1:10]), self.renumbered(self.PLAN))
        self.assertEqual([at for at, act in enumerate(found) if act == ("s",)], [0, 10, 20])
        self.assertEqual([step.kernel_ns for step in steps], [102000, 102000])
        self.assertEqual(steps[1].idle_ns, 2000 + 3000)

    @staticmethod
    def renumbered(plan):
        """Buffers by the order of their allocation."""
        numbers = {}
        for kind, *rest in plan:
            if kind == "a":
                numbers[rest[0]] = len(numbers)
        return [(kind, rest[0], [(numbers[buffer], written) for buffer, written in rest[1]])
                if kind == "u" else (kind, numbers[rest[0]], *rest[1:]) for kind, *rest in plan]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
