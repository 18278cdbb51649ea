#!/usr/bin/env python3
"""The shims check the memory they are given: a product of matrices that are gone, or too short,
fails the context as on a GPU. What they do not simulate says so. Runs without PyTorch."""
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import unittest

ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
FIND_HEADER = pathlib.Path(__file__).resolve().parents[2] / "src/sim/libs/find_header.py"
SIZE = 512
BYTES = SIZE * SIZE * 4
ILLEGAL_ADDRESS = 700
GRANULE = 2 << 20

# Each shim: what its library is called, its own status for what is not supported, and its headers.
SHIMS = {
    "libcublas.so.13": ("cuBLAS", 15, ["cublas_api.h", "cublas_v2.h", "cublas.h", "cublasXt.h"]),
    "libcublasLt.so.13": ("cuBLASLt", 15, ["cublasLt.h"]),
    "libcudnn.so.9": ("cuDNN", 3000, ["cudnn.h", "cudnn_graph.h", "cudnn_ops.h", "cudnn_adv.h",
                                      "cudnn_cnn.h"]),
    "libcufft.so.12": ("cuFFT", 16, ["cufft.h", "cufftXt.h"]),
    "libcusolver.so.12": ("cuSOLVER", 9, ["cusolverDn.h", "cusolverRf.h", "cusolverSp.h",
                                          "cusolverSp_LOWLEVEL_PREVIEW.h"]),
    "libcusparse.so.12": ("cuSPARSE", 10, ["cusparse.h"]),
    "libnccl.so.2": ("NCCL", 5, ["nccl.h"]),
    "libnvidia-ml.so.1": ("NVML", 3, ["nvml.h"]),
}


def load(name):
    return ctypes.CDLL(str(ROOT / "sim" / name), mode=ctypes.RTLD_GLOBAL)


def expect(status, wanted=0):
    if status != wanted:
        sys.exit(f"status {status} instead of {wanted}")


class Device:
    """The runtime, and memory that ends where mapped memory ends."""

    def __init__(self):
        self.runtime = load("libcudart.so.13")

    def allocate(self):
        memory = ctypes.c_void_p()
        expect(self.runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(GRANULE)))
        return memory

    def free(self, memory):
        expect(self.runtime.cudaFree(memory))

    def synchronize(self, wanted=0):
        expect(self.runtime.cudaDeviceSynchronize(), wanted)


class Product(Device):
    """A square product in single precision."""

    def __init__(self):
        super().__init__()
        self.blas = load("libcublas.so.13")
        self.handle = ctypes.c_void_p()
        self.matrices = [self.allocate() for _ in range(3)]
        expect(self.blas.cublasCreate_v2(ctypes.byref(self.handle)))

    def multiply(self, rows=SIZE, ld=SIZE):
        one = ctypes.c_float(1)
        a, b, c = self.matrices
        return self.blas.cublasSgemm_v2(self.handle, 0, 0, rows, rows, rows, ctypes.byref(one), a,
                                        ld, b, ld, ctypes.byref(one), c, ld)


def good():
    product = Product()
    expect(product.multiply())
    product.synchronize()


def freed():
    for which in range(3):
        if os.fork() == 0:
            product = Product()
            expect(product.multiply())
            product.free(product.matrices[which])
            product.multiply()
            product.synchronize(ILLEGAL_ADDRESS)
            os._exit(0)
        if os.wait()[1] != 0:
            sys.exit(1)


def too_short():
    product = Product()
    rows = 1 << 14  # far more than all three matrices and what follows them
    product.multiply(rows, rows)
    product.synchronize(ILLEGAL_ADDRESS)


def bad_shape():
    product = Product()
    expect(product.multiply(SIZE, SIZE - 1), 7)  # CUBLAS_STATUS_INVALID_VALUE
    product.synchronize()


class Transform(Device):
    """A transform of complex numbers in single precision, into other memory."""

    def __init__(self, size):
        super().__init__()
        self.fft = load("libcufft.so.12")
        self.plan = ctypes.c_int()
        self.memory = [self.allocate() for _ in range(2)]
        area = ctypes.c_size_t()
        expect(self.fft.cufftCreate(ctypes.byref(self.plan)))
        expect(self.fft.cufftSetAutoAllocation(self.plan, 0))
        expect(self.fft.cufftMakePlan1d(self.plan, size, 0x29, 1, ctypes.byref(area)))  # C2C
        # Nothing is mapped behind it that would hide an end beyond that of the output.
        expect(self.fft.cufftSetWorkArea(self.plan, self.memory[0]))

    def run(self, wanted=0):
        self.fft.cufftExecC2C(self.plan, *self.memory, -1)
        self.synchronize(wanted)


def fft_good():
    Transform(GRANULE // 8).run()


def fft_freed():
    transform = Transform(GRANULE // 8)
    transform.free(transform.memory[1])
    transform.run(ILLEGAL_ADDRESS)


def fft_too_short():
    Transform(GRANULE * 8).run(ILLEGAL_ADDRESS)


class Factor(Device):
    """The triangular factor of a matrix that fills its memory."""

    def __init__(self):
        super().__init__()
        self.solver = load("libcusolver.so.12")
        self.handle = ctypes.c_void_p()
        self.matrix, self.area, self.info = (self.allocate() for _ in range(3))
        expect(self.solver.cusolverDnCreate(ctypes.byref(self.handle)))

    def run(self, wanted=0):
        order, length = 512, ctypes.c_int()
        expect(self.solver.cusolverDnDpotrf_bufferSize(self.handle, 0, order, self.matrix, order,
                                                       ctypes.byref(length)))
        self.solver.cusolverDnDpotrf(self.handle, 0, order, self.matrix, order, self.area, length,
                                     self.info)
        self.synchronize(wanted)


def solver_good():
    factor = Factor()
    expect(factor.runtime.cudaMemset(factor.info, 0xff, ctypes.c_size_t(4)))
    factor.run()
    info = ctypes.c_int()
    expect(factor.runtime.cudaMemcpy(ctypes.byref(info), factor.info, ctypes.c_size_t(4), 2))
    expect(info.value)


def solver_freed():
    factor = Factor()
    factor.free(factor.matrix)
    factor.run(ILLEGAL_ADDRESS)


class Recurrent(Device):
    """A forward pass of an LSTM over a few steps."""
    STEPS, BATCH, WIDTH = 4, 8, 128

    def __init__(self):
        super().__init__()
        self.dnn = load("libcudnn.so.9")
        self.handle, self.network, self.data = (ctypes.c_void_p() for _ in range(3))
        lengths = (ctypes.c_int * self.BATCH)(*[self.STEPS] * self.BATCH)
        self.memory = {name: self.allocate() for name in ("x", "y", "weights", "area", "reserve")}
        self.sizes = {name: ctypes.c_size_t() for name in ("weights", "area", "reserve")}
        expect(self.dnn.cudnnCreate(ctypes.byref(self.handle)))
        expect(self.dnn.cudnnCreateRNNDescriptor(ctypes.byref(self.network)))
        expect(self.dnn.cudnnCreateRNNDataDescriptor(ctypes.byref(self.data)))
        # An LSTM (2) with two biases (2), in one direction, of single precision.
        expect(self.dnn.cudnnSetRNNDescriptor_v8(self.network, 0, 2, 2, 0, 0, 0, 0, 0, self.WIDTH,
                                                 self.WIDTH, 0, 1, None, 0))
        expect(self.dnn.cudnnSetRNNDataDescriptor(self.data, 0, 0, self.STEPS, self.BATCH,
                                                  self.WIDTH, lengths, None))
        expect(self.dnn.cudnnGetRNNWeightSpaceSize(self.handle, self.network,
                                                   ctypes.byref(self.sizes["weights"])))
        expect(self.dnn.cudnnGetRNNTempSpaceSizes(self.handle, self.network, 1, self.data,
                                                  ctypes.byref(self.sizes["area"]),
                                                  ctypes.byref(self.sizes["reserve"])))

    def run(self, wanted=0):
        pairs = [part for name in ("weights", "area", "reserve")
                 for part in (self.sizes[name], self.memory[name])]
        status = self.dnn.cudnnRNNForward(self.handle, self.network, 1, None, self.data,
                                          self.memory["x"], self.data, self.memory["y"],
                                          *[None] * 6, *pairs)
        self.synchronize(wanted)
        return status


def rnn_good():
    recurrent = Recurrent()
    # Four gates, each with two square matrices and two biases.
    width = recurrent.WIDTH
    expect(recurrent.sizes["weights"].value, 4 * (2 * width * width + 2 * width) * 4)
    expect(recurrent.run())
    recurrent.sizes["reserve"].value -= 1
    expect(recurrent.run(), 2000)  # CUDNN_STATUS_BAD_PARAM


def rnn_freed():
    for name in ("x", "y", "weights", "area", "reserve"):
        if os.fork() == 0:
            recurrent = Recurrent()
            recurrent.free(recurrent.memory[name])
            recurrent.run(ILLEGAL_ADDRESS)
            os._exit(0)
        if os.wait()[1] != 0:
            sys.exit(1)


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Ranks(Device):
    """One rank of a communicator of many, alone on its device, on a stream of its own."""

    def __init__(self, ranks=16, rank=0, unique=None):
        super().__init__()
        self.nccl = load("libnccl.so.2")
        self.unique = unique
        if unique is None:
            self.unique = UniqueId()
            expect(self.nccl.ncclGetUniqueId(ctypes.byref(self.unique)))
        self.comm, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        expect(self.nccl.ncclCommInitRank(ctypes.byref(self.comm), ranks, self.unique, rank))
        expect(self.runtime.cudaStreamCreateWithFlags(ctypes.byref(self.stream), 1))
        self.memory = self.allocate()

    def gather(self, count):
        """The part of each rank follows that of the rank before."""
        self.nccl.ncclAllGather(self.memory, self.memory, ctypes.c_size_t(count), 0, self.comm,
                                self.stream)

    def fill(self, value):
        expect(self.runtime.cudaMemset(self.memory, value, ctypes.c_size_t(8)))

    def content(self):
        data = ctypes.create_string_buffer(8)
        expect(self.runtime.cudaStreamSynchronize(self.stream))
        expect(self.runtime.cudaMemcpy(data, self.memory, ctypes.c_size_t(8), 2))
        return data.raw

    def split(self, color, key):
        """(rank, ranks) in the new communicator."""
        comm, rank, ranks = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        expect(self.nccl.ncclCommSplit(self.comm, color, key, ctypes.byref(comm), None))
        expect(self.nccl.ncclCommUserRank(comm, ctypes.byref(rank)))
        expect(self.nccl.ncclCommCount(comm, ctypes.byref(ranks)))
        return rank.value, ranks.value


def nccl_good():
    ranks = Ranks()
    ranks.gather(GRANULE // 16)
    ranks.synchronize()
    expect(ranks.nccl.ncclAllReduce(ranks.memory, None, ctypes.c_size_t(1), 0, 0, ranks.comm, None),
           4)  # ncclInvalidArgument


def nccl_too_short():
    ranks = Ranks(64)
    ranks.gather(GRANULE)
    ranks.synchronize(ILLEGAL_ADDRESS)


def nccl_freed():
    ranks = Ranks()
    ranks.free(ranks.memory)
    ranks.gather(GRANULE // 16)
    ranks.synchronize(ILLEGAL_ADDRESS)


def nccl_short_data():
    """Short data is exchanged between ranks, whatever the order of their calls."""
    first = Ranks(2, 0)
    both = [first, Ranks(2, 1, first.unique)]
    for times in range(3):
        for rank, self in enumerate(both):
            self.fill(16 * times + rank)
        for self in both:
            # In place: the second rank's own part is where its result will be.
            mine = ctypes.c_void_p(self.memory.value + (4 if self is both[1] else 0))
            expect(self.nccl.ncclAllGather(mine, self.memory, ctypes.c_size_t(4), 0, self.comm,
                                           self.stream))
        wanted = bytes([16 * times] * 4 + [16 * times + 1] * 4)
        found = [self.content() for self in both]
        if found != [wanted, wanted]:
            sys.exit(f"gathered {found} instead of {wanted}")
    both[1].fill(7)
    for self in reversed(both):
        expect(self.nccl.ncclBroadcast(self.memory, self.memory, ctypes.c_size_t(8), 0, 1,
                                       self.comm, self.stream))
    if both[0].content() != bytes([7] * 8):
        sys.exit("nothing was broadcast")


def nccl_missing_rank():
    """A stream waits for a rank that does not come, until the communicator is aborted."""
    ranks = Ranks(2, 0)
    ranks.gather(4)
    for _ in range(100):
        expect(ranks.runtime.cudaStreamQuery(ranks.stream), 600)  # cudaErrorNotReady
    expect(ranks.nccl.ncclCommAbort(ranks.comm))
    ranks.synchronize()


def nccl_split():
    first = Ranks(4, 0)
    everyone = [first, *(Ranks(4, rank, first.unique) for rank in range(1, 4))]
    found = {}

    def split(rank):
        found[rank] = everyone[rank].split(rank % 2, -rank)

    threads = [threading.Thread(target=split, args=[rank]) for rank in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Two of each colour, and the higher rank first.
    wanted = {0: (1, 2), 1: (1, 2), 2: (0, 2), 3: (0, 2)}
    if found != wanted:
        sys.exit(f"{found} instead of {wanted}")


def exports(path, kinds):
    """Names that a library defines; only names are read."""
    done = subprocess.run(["nm", "-D", "--defined-only", str(path)], text=True, check=True,
                          stdout=subprocess.PIPE)
    fields = [line.split() for line in done.stdout.splitlines()]
    return {name.split("@")[0] for *_, kind, name in fields if kind in kinds}


def nvml_sensors():
    """The figures that torch.cuda asks NVML for."""
    library, device = load("libnvidia-ml.so.1"), ctypes.c_void_p()
    expect(library.nvmlInit_v2())
    expect(library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
    number = ctypes.c_uint()
    for name, words, wanted in (("ClockInfo", [1], 1980), ("ClockInfo", [2], 2619),
                                ("MaxClockInfo", [1], 1980), ("Temperature", [0], 35),
                                ("PowerUsage", [], 60000)):
        expect(library["nvmlDeviceGet" + name](device, *words, ctypes.byref(number)))
        expect(number.value, wanted)
    rates = (ctypes.c_uint * 2)(7, 7)
    expect(library.nvmlDeviceGetUtilizationRates(device, rates))
    expect(list(rates), [0, 0])
    expect(library.nvmlDeviceGetTemperature(device, 1, ctypes.byref(number)), 2)


def nvml_handles():
    """Bad handles and places for answers are refused, by every version of a function."""
    library, device, number = load("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_uint()
    room, uninitialized, invalid = ctypes.create_string_buffer(4096), 1, 2
    bad = ctypes.create_string_buffer(4096)
    by_handle = ("GetUUID", "GetIndex", "GetName", "GetCudaComputeCapability", "GetPciInfo_v3",
                 "GetPciInfo_v2", "GetMemoryInfo", "GetMemoryInfo_v2", "GetPowerUsage",
                 "GetComputeRunningProcesses", "GetComputeRunningProcesses_v2",
                 "GetComputeRunningProcesses_v3", "GetUtilizationRates", "GetGpuFabricInfoV")
    expect(library.nvmlDeviceGetCount_v2(ctypes.byref(number)), uninitialized)
    expect(library.nvmlShutdown(), uninitialized)
    for init, version in (("nvmlInit_v2", "_v2"), ("nvmlInit", "")):
        expect(library[init]())
        expect(library["nvmlDeviceGetCount" + version](ctypes.byref(number)))
        expect(number.value, 1)
        expect(library["nvmlDeviceGetCount" + version](None), invalid)
        for way, good, wrong in (("Index", 0, 1), ("PciBusId", b"0000:10:00.0", None)):
            handle = library[f"nvmlDeviceGetHandleBy{way}{version}"]
            expect(handle(good, ctypes.byref(device)))
            expect(handle(wrong, ctypes.byref(device)), invalid)
            expect(handle(good, None), invalid)
        for name in by_handle:
            for wrong in (None, bad):
                expect(library["nvmlDevice" + name](wrong, room, room, room), invalid)
            expect(library["nvmlDevice" + name](device, None, 0, None), invalid)
        expect(library.nvmlShutdown())
    for name in by_handle:
        expect(library["nvmlDevice" + name](device, room, room, room), uninitialized)


def call_stubs(name):
    """Calls each function that is not simulated, twice, and prints what they returned."""
    library = load(name)
    results = {}
    for stub in sorted(exports(ROOT / "sim" / name, "W")):
        function = library[stub]
        function.restype = ctypes.c_long
        results[stub] = [function(), function()]
    print(json.dumps(results))


CASES = {case.__name__: case for case in (
    good, freed, too_short, bad_shape, fft_good, fft_freed, fft_too_short, solver_good,
    solver_freed, rnn_good, rnn_freed, nccl_good, nccl_too_short, nccl_freed, nccl_short_data,
    nccl_missing_rank, nccl_split, nvml_handles, nvml_sensors)}
NEEDED = {"rnn": "libcudnn.so.9", "fft": "libcufft.so.12", "solver": "libcusolver.so.12",
          "nccl": "libnccl.so.2", "nvml": "libnvidia-ml.so.1"}


def is_built(name):
    return (ROOT / "sim" / name).exists()


class Shims(unittest.TestCase):
    def run_case(self, *arguments):
        env = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY")}
        env["LD_LIBRARY_PATH"] = str(ROOT / "sim")
        env["SPILLWAY_SIM_MEMORY"] = "1GiB"
        done = subprocess.run([sys.executable, __file__, *arguments], env=env, text=True,
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_memory_is_checked(self):
        for name in CASES:
            with self.subTest(case=name):
                if is_built(NEEDED.get(name.split("_")[0], "libcublas.so.13")):
                    self.assertEqual(self.run_case(name).stderr, "")

    def test_unmodelled_functions_are_named_once(self):
        for name, (library, status, _) in SHIMS.items():
            with self.subTest(shim=name):
                if not is_built(name):
                    continue
                done = self.run_case(name)
                results = json.loads(done.stdout)
                said = re.findall(r"^spillway sim: (\w+) of (\w+) is not simulated and fails; .+$",
                                  done.stderr, re.MULTILINE)
                self.assertEqual(sorted(said), [(stub, library) for stub in sorted(results)])
                self.assertEqual(len(done.stderr.splitlines()), len(results))
                for stub, returned in results.items():
                    self.assertIn(returned, ([status, status], [0, 0]), stub)
                # Nearly all functions return a status.
                self.assertGreaterEqual(list(results.values()).count([status, status]), 1)

    def test_every_declared_function_is_there(self):
        """The functions that the real library exports and its headers declare."""
        for name, (_, _, headers) in SHIMS.items():
            done = subprocess.run([sys.executable, str(FIND_HEADER), "/none", "13", headers[0]],
                                  text=True, stdout=subprocess.PIPE, check=True)
            folder = pathlib.Path(done.stdout.strip())
            real = folder.parent / "lib" / name
            if not is_built(name) or not done.stdout.strip() or not real.exists():
                continue
            text = "".join((folder / header).read_text(errors="replace") for header in headers
                           if (folder / header).exists())
            words = set(re.findall(r"\w+", text))
            with self.subTest(shim=name):
                missing = exports(real, "TW") - exports(ROOT / "sim" / name, "TW")
                self.assertEqual(sorted(missing & words), [])


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in CASES:
        CASES[sys.argv[1]]()
    elif len(sys.argv) > 1 and sys.argv[1] in SHIMS:
        call_stubs(sys.argv[1])
    elif not is_built("libcublas.so.13"):
        print("skipped: cuBLAS was not built, its header was not found")
        sys.exit(77)
    elif os.environ.get("BUILD_SANITIZED", "none") != "none":
        print("skipped: an interpreter without the sanitizer cannot load the shims")
        sys.exit(77)
    else:
        unittest.main(verbosity=2)
