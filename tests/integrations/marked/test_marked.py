"""What test_pytest.py runs: tests with the mark, and how they end."""
import ctypes
import os
import unittest

import pytest

ONE = pytest.mark.gpu_memory("1 GB")


@ONE
def test_fits(take, record_property):
    take(100)
    record_property("taken", 100)


@ONE
def test_spills(take):
    take(600)
    take(600)


@pytest.mark.gpu_memory("1 GB", require="spill", devices=2)
@pytest.mark.parametrize("size", [100, 600], ids=["a::b", "c[d]"])
def test_options(take, size):
    take(size)
    take(size)
    count = ctypes.c_int()
    assert ctypes.CDLL("libcudart.so.13").cudaGetDeviceCount(ctypes.byref(count)) == 0
    assert count.value == 2


@pytest.mark.gpu_memory(profile="rtx3090-24g")
def test_card(take):
    take(100)


@ONE
class TestClass:
    def test_inside(self, take):
        take(100)


@ONE
class Unit(unittest.TestCase):
    def test_inside(self):
        address = ctypes.c_void_p()
        runtime = ctypes.CDLL("libcudart.so.13")
        self.assertEqual(runtime.cudaMalloc(ctypes.byref(address), 1 << 20), 0)


@ONE
def test_fails(take):
    take(100)
    assert "this" == "that"


@ONE
def test_setup_fails(nothing):
    pass


@ONE
def test_skips():
    pytest.skip("not today")


@ONE
@pytest.mark.xfail
def test_known(take):
    take(600)
    take(600)


@ONE
def test_uses_nothing():
    pass


@ONE
def test_dies():
    os._exit(3)


@pytest.mark.gpu_memory("1 GB", devics=2)
def test_wrong_option():
    pass


@pytest.mark.gpu_memory
def test_no_size():
    pass


@ONE
def test_unwanted():
    pass


def test_plain():
    with open("/proc/self/maps") as maps:
        assert "libspillway" not in maps.read()
