#!/usr/bin/env python3
"""The parts of the benchmark `arguments` on tiny cases that were worked out by hand.

    test_arguments.py BUILD
"""
import pathlib
import sys
import tempfile
import unittest

import access_log
import bench
import bench_arguments

# Three blocks. The first launch finds what it uses. The second uses the third block, which it is
# not found to, and not the first, while another thread is about to launch, too. The fifth is known
# in part; of the sixth nothing is known. The operators use the second block; one makes the fourth.
LOG = """1 1 1 cuLaunchKernel = 0 kernel=before item=1.1 t=0..0
spillway: access live 0x1000+4096 7
spillway: access alloc 0x2000+4096 8
spillway: access alloc 0x3000+512 9
spillway: access use 0x1000
spillway: access use 0x2000
spillway: access kernel 1
1 1 2   uses 1.2 r0x1800+16 w0x2000+4096
1 1 3 cuLaunchKernel = 0 kernel=spw_touch_gemm item=1.2 t=0..0
spillway: access use 0x1000
spillway: access use 0x2000
spillway: access kernel 1
spillway: access kernel 2
1 1 4 cuLaunchKernelEx_ptsz = 0 kernel=spw_add_through item=1.3 t=0..0
1 1 5   uses 1.3 w0x2ffc+16
1 1 6   ran 1.3 kernel spw_add_through t=1..2 device=0 in=0 out=0
operator begin aten.mul.Tensor
spillway: access alloc 0x4000+4096 9
spillway: access use 0x4000
spillway: access use 0x1000
spillway: access kernel 1
1 1 7 cuLaunchKernel = 0 kernel=mul item=1.4 t=0..0
operator end aten.mul.Tensor 0x2000+512 0x9000+4096
operator begin aten.zeros_like.default
spillway: access use 0x4000
spillway: access other 1
1 1 7 cuMemsetD8Async = 0 0x4000 t=0..0
spillway: access kernel 1
1 1 7 cuLaunchKernel = 0 kernel=fill item=1.5 t=0..0
operator end aten.zeros_like.default 0x2000+512 0x4000+512
spillway: access free 0x3000
spillway: access use 0x1000
spillway: access partial 1
1 1 8 cuLaunchKernel = 0 kernel=k item=1.6 t=0..0
1 1 9 cuGraphLaunch = 0 t=0..0
1 1 9 cuLaunchKernel = 700 kernel=k t=0..0
"""


def read(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "log"
        path.write_text(text)
        return access_log.Reader().read(path)


class Log(unittest.TestCase):
    def test_launches(self):
        self.assertEqual([(launch.kernel, launch.known, launch.named, launch.used)
                          for launch in read(LOG).launches],
                         [("spw_touch_gemm", True, {1, 2}, {1, 2}),
                          ("spw_add_through", True, {1, 2}, {2, 3}),
                          ("mul", True, {1, 4}, set()), ("fill", True, set(), set()),
                          ("k", False, {1}, set()), ("graph", False, set(), set())])

    def test_operators(self):
        self.assertEqual(read(LOG).operators, [
            access_log.Operator("aten.mul.Tensor", 1, True, {1, 4}, {4}, {2}),
            access_log.Operator("aten.zeros_like.default", 1, True, {4}, set(), {2, 4})])

    def test_events(self):
        self.assertEqual(read(LOG).events[:6], [
            ("live", 1, 4096, 7), ("alloc", 2, 4096, 8), ("alloc", 3, 512, 9), ("use", 1),
            ("use", 2), ("call",)])

    def test_counts(self):
        """One of two launches missed the third block and named the first in vain. The operators
        missed the second block, and `mul` used the first, which is somebody else's."""
        counts = bench_arguments.Counts().take(read(LOG))
        self.assertEqual(vars(counts), {
            "launches": 6, "known": 4, "stated": 2, "missed": 1, "named_blocks": 4,
            "false_blocks": 1, "operators": 2, "operators_known": 2, "operators_missed": 2,
            "operator_blocks": 3, "operator_false": 1})

    def test_verdict(self):
        self.assertEqual([bench_arguments.Counts.verdict(missed) for missed in (None, 0.25, 0.26)],
                         ["", "ok", "MISSED"])


class Program(unittest.TestCase):
    PLAN = "a 0 600000000\na 1 600000000\nu 10 1 0 1\nu 10 0 1\nf 0\nf 1\n"

    def launches(self, **options):
        """Those of two steps with two blocks for which there is no room together."""
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder) / "plan"
            plan.write_text(self.PLAN)
            reader = bench_arguments.run([bench.PROGRAMS / "play", 2, plan], bench.GIB, **options)
        found = [launch for launch in reader.launches if launch.used]
        self.assertEqual([len(launch.used) for launch in found], [2, 1, 2, 1])
        self.assertTrue(all(launch.named == launch.used for launch in found if launch.known))
        return found

    @unittest.skipUnless((bench.PROGRAMS / "play").exists(), "built without benchmarks")
    def test_play(self):
        """Each launch is known, and names what it uses."""
        self.assertTrue(all(launch.known for launch in self.launches()))

    @unittest.skipUnless((bench.PROGRAMS / "play").exists(), "built without benchmarks")
    def test_no_memory_to_tell(self):
        """The driver has no memory to tell the parameters at first: it is asked again."""
        found = self.launches(SIM_FAIL="cuFuncGetParamInfo:1")
        self.assertEqual([launch.known for launch in found], [False, True, True, True])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
