#!/usr/bin/env python3
"""The shims check the memory they are given: a product of matrices that are gone, or too short,
fails the context as on a GPU. Runs without PyTorch."""
import ctypes
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
SIZE = 512
BYTES = SIZE * SIZE * 4
ILLEGAL_ADDRESS = 700
GRANULE = 2 << 20


def load(name):
    return ctypes.CDLL(str(ROOT / "sim" / name), mode=ctypes.RTLD_GLOBAL)


class Product:
    """A square product in single precision, of matrices that end where mapped memory ends."""

    def __init__(self):
        self.runtime = load("libcudart.so.13")
        self.blas = load("libcublas.so.13")
        self.handle = ctypes.c_void_p()
        self.matrices = [ctypes.c_void_p() for _ in range(3)]
        for matrix in self.matrices:
            self.expect(self.runtime.cudaMalloc(ctypes.byref(matrix), ctypes.c_size_t(GRANULE)))
        self.expect(self.blas.cublasCreate_v2(ctypes.byref(self.handle)))

    @staticmethod
    def expect(status, wanted=0):
        if status != wanted:
            sys.exit(f"status {status} instead of {wanted}")

    def multiply(self, rows=SIZE, ld=SIZE):
        one = ctypes.c_float(1)
        a, b, c = self.matrices
        return self.blas.cublasSgemm_v2(self.handle, 0, 0, rows, rows, rows, ctypes.byref(one), a,
                                        ld, b, ld, ctypes.byref(one), c, ld)

    def synchronize(self):
        return self.runtime.cudaDeviceSynchronize()


def good():
    product = Product()
    product.expect(product.multiply())
    product.expect(product.synchronize())


def freed():
    for which in range(3):
        if os.fork() == 0:
            product = Product()
            product.expect(product.multiply())
            product.expect(product.runtime.cudaFree(product.matrices[which]))
            product.multiply()
            product.expect(product.synchronize(), ILLEGAL_ADDRESS)
            os._exit(0)
        if os.wait()[1] != 0:
            sys.exit(1)


def too_short():
    product = Product()
    rows = 1 << 14  # far more than all three matrices and what follows them
    product.multiply(rows, rows)
    product.expect(product.synchronize(), ILLEGAL_ADDRESS)


def bad_shape():
    product = Product()
    product.expect(product.multiply(SIZE, SIZE - 1), 7)  # CUBLAS_STATUS_INVALID_VALUE
    product.expect(product.synchronize())


def not_modelled():
    product = Product()
    for _ in range(2):
        product.expect(product.blas.cublasSaxpy_v2(product.handle), 15)


CASES = {case.__name__: case for case in (good, freed, too_short, bad_shape, not_modelled)}


class Shims(unittest.TestCase):
    def run_case(self, name):
        env = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY")}
        env["LD_LIBRARY_PATH"] = str(ROOT / "sim")
        env["SPILLWAY_SIM_MEMORY"] = "1GiB"
        done = subprocess.run([sys.executable, __file__, name], env=env, text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_memory_is_checked(self):
        for name in ("good", "freed", "too_short", "bad_shape"):
            with self.subTest(case=name):
                self.assertEqual(self.run_case(name), "")

    def test_unmodelled_function_is_named_once(self):
        self.assertEqual(self.run_case("not_modelled").count("cublasSaxpy_v2"), 1)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in CASES:
        CASES[sys.argv[1]]()
    elif not (ROOT / "sim/libcublas.so.13").exists():
        print("skipped: cuBLAS was not built, its header was not found")
        sys.exit(77)
    else:
        unittest.main(verbosity=2)
