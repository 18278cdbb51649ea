import ctypes

import pytest

MIB = 1 << 20


@pytest.fixture
def take():
    """Takes device memory; ends the test where there is no device."""
    runtime = ctypes.CDLL("libcudart.so.13")

    def allocate(size):
        address = ctypes.c_void_p()
        assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size * MIB)) == 0
    return allocate
