"""The features of PyTorch that touch device memory: what works without spillway must work with it.

Each is a function of a few lines in a file of its group, which PyTorch is imported in, not by the
file: the list can be read without it. It runs in a process of its own, before which CUDA is not
initialised, in an empty folder, and returns its figures by name. What is compared is their text, so
addresses, times and process numbers are left out. Contents are compared where the simulated GPU
computes them.
"""
import dataclasses
import importlib
import pathlib
import typing

MIB = 1 << 20
HUGE = 1 << 50  # more than any device with any host memory

CATALOGUE = {}


class Absent(Exception):
    """The feature cannot be tried here: what is missing."""


@dataclasses.dataclass(frozen=True)
class Feature:
    """`since`: the first version of PyTorch that has it, `until`: the first that does not.
    `settings`: environment variables, `devices`: how many it needs, `triton`: kernels are
    compiled, `ends`: the end of the interpreter belongs to it, `long`: left to the long tests."""
    name: str
    group: str
    what: str
    call: typing.Callable
    since: tuple
    until: tuple
    settings: tuple
    devices: int
    triton: bool
    ends: bool
    long: bool

    def why_absent(self, version):
        """None if that version of PyTorch, such as "2.11.0+cu130", has it."""
        number = tuple(int(part) for part in version.split(".")[:2])
        if number < self.since:
            return f"since {'.'.join(map(str, self.since))}"
        if number >= self.until:
            return f"until {'.'.join(map(str, self.until))}"
        return None


def feature(what, *, since=(2, 6), until=(9, 9), settings=None, devices=1, triton=False,
            ends=False, long=False):
    """Enters a function into the catalogue."""
    def enter(call):
        name = call.__name__
        if name in CATALOGUE:
            raise ValueError(f"two features are called {name}")
        CATALOGUE[name] = Feature(name, call.__module__.rpartition(".")[2], what, call, since,
                                  until, tuple(sorted((settings or {}).items())), devices, triton,
                                  ends, long)
        return call
    return enter


def catalogue():
    """All features by name, group after group."""
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        if path.stem != "__init__":
            importlib.import_module(f"{__name__}.{path.stem}")
    return CATALOGUE


def refusal(call, *arguments, **more):
    """The kind and the first line of the error that a call ends with, or None. Numbers that depend
    on what else is on the device are left out."""
    import re
    try:
        call(*arguments, **more)
    except Exception as error:
        line = str(error).strip().partition("\n")[0]
        line = re.sub(r"0x[0-9a-f]+", "ADDRESS", line)
        return f"{type(error).__name__}: {line}"
    return None


def megabytes(count):
    """A tensor of so many MiB, filled with ones."""
    import torch
    return torch.ones(count * MIB, dtype=torch.uint8, device="cuda")


def need(module):
    """A module that need not be installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Absent(f"no {module}") from None


def need_name(owner, name):
    """An attribute that not every version has."""
    if not hasattr(owner, name):
        raise Absent(f"no {name}")
    return getattr(owner, name)


class RawTensor:
    """Memory at an address, as other libraries offer theirs."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1",
                                         "data": (address, False), "version": 3}


def runtime():
    """The CUDA runtime that PyTorch has loaded."""
    import ctypes
    import torch
    return ctypes.CDLL(f"libcudart.so.{torch.version.cuda.partition('.')[0]}")


def raw_memory(size):
    """An address from cudaMalloc."""
    import ctypes
    import torch
    torch.zeros(1, device="cuda")
    address = ctypes.c_void_p()
    error = runtime().cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size))
    if error:
        raise RuntimeError(f"cudaMalloc: {error}")
    return address.value
