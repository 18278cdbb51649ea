#!/usr/bin/env python3
"""Libraries that are not as they should be: the program works as it would bare, PyTorch's own cache
serves its tensors, and one line says so."""
import fakes
import harness

OBJECT = fakes.program("object")
DIFFERENT = r"mode segment \(PyTorch 2\.11\.0: its allocator is not as this version's should be; "
UNKNOWN = r"mode segment \(PyTorch {}: this version is not known; "
FOREIGN = r"mode auto \(the user chose an allocator for PyTorch: what it calls is served\)$"
FRACTION = (r"mode segment \(PyTorch 2\.11\.0: its allocator does not answer as this version's "
            r"should; ")


class Variants(fakes.Case):
    def check(self, line, allocs=4, mode="segment", **environment):
        """`environment`: variables without SPILLWAY_."""
        for name, value in environment.items():
            harness.os.environ[name] = value
            self.addCleanup(harness.os.environ.pop, name, None)
        for case in ("plain", "both", "deleters"):
            result = self.run_both(OBJECT, case, allow=[line], CHECK="on")
            self.assertEqual(len(result.said()), 1, result.stderr)
            self.assertEqual(result.stats["mode"], mode)
        self.assertEqual(result.device()["allocs"], allocs)

    def test_table(self):
        for change in ("more", "fewer", "null", "data", "name"):
            with self.subTest(change):
                self.check(DIFFERENT, FAKE_TORCH=change)

    def test_answer_that_cannot_be(self):
        self.check(FRACTION, FAKE_TORCH="fraction")

    def test_type(self):
        """Not the native allocator's: somebody put another one in its place."""
        for change in ("typeless", "class"):
            with self.subTest(change):
                self.check(FOREIGN, mode="auto", FAKE_TORCH=change)

    def test_pointer_that_is_set_later(self):
        """It is found when PyTorch allocates, though the pool was open before."""
        self.check(fakes.TENSORS, allocs=6, mode="tensor", FAKE_TORCH="late")

    def test_version(self):
        for text, named in (("__version__ = '9.9.0'\n", "9.9.0"), ("", ""), (None, ""),
                            ("\0\xff" * 3000, ""), ("__version__ = 'two'\n", ""),
                            ("__version__ = '2.'\n", ""), ("__version__ = '", ""),
                            ("__version__ = '-2.11.0'\n", ".*"),
                            ("__version__ = '99999999999999999999.11.0'\n", ".*")):
            with self.subTest(text):
                self.own_libraries(version=text)
                self.check(UNKNOWN.format(named))

    def test_symbol_that_is_missing(self):
        self.own_libraries(library="lacking")
        self.check(DIFFERENT)

    def test_own_folder(self):
        """The folders that these tests make are as good as the first one."""
        self.own_libraries()
        self.check(fakes.TENSORS, mode="tensor")


if __name__ == "__main__":
    harness.main()
