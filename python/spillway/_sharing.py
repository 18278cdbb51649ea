"""Tensors on the GPU for other processes, where PyTorch's own way is closed: in tensor mode its
backend `cudaMallocAsync` refuses to share memory, before it calls CUDA.

A tensor travels as the handle that cuIpcGetMemHandle gives for its storage, and the other process
maps that. This process keeps the storage until the other one has let go of it: each tensor that was
sent has a byte in memory that both see, which the receiver clears.
"""
from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from typing import Any

from ._library import library

_SLOTS = 1 << 16
_HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1
_BACKEND = "cudaMallocAsync"


class _Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * _HANDLE_BYTES)]


def _driver(name: str, *arguments: Any) -> None:
    """Calls a function of the CUDA driver, which spillway answers."""
    result = getattr(ctypes.CDLL(None), name)(*arguments)
    if result != 0:
        raise RuntimeError(f"{name} failed with CUDA error {result}; spillway may have said why")


# ---- the process that sends ----

class _Sent:
    """The storages that other processes may use, by the number of their byte."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.file = os.memfd_create("spillway-tensors", os.MFD_CLOEXEC)
        os.ftruncate(self.file, _SLOTS)
        self.used = mmap.mmap(self.file, _SLOTS)
        self.storages: dict[int, Any] = {}
        self.next = 0

    def collect(self) -> None:
        """Lets go of storages that their receivers do not use any more."""
        for slot in [slot for slot in self.storages if not self.used[slot]]:
            del self.storages[slot]

    def add(self, storage: Any) -> int:
        self.collect()
        if len(self.storages) == _SLOTS:
            raise RuntimeError(f"{_SLOTS} tensors were sent that no process has let go of")
        while self.next in self.storages:
            self.next = (self.next + 1) % _SLOTS
        slot, self.next = self.next, (self.next + 1) % _SLOTS
        self.used[slot] = 1
        self.storages[slot] = storage
        return slot


_lock = threading.Lock()
_sent: _Sent | None = None


def _keep(storage: Any) -> tuple[int, int, int]:
    """Keeps a storage, and tells where its byte is."""
    global _sent
    with _lock:
        if _sent is None or _sent.pid != os.getpid():
            _sent = _Sent()
        return _sent.pid, _sent.file, _sent.add(storage)


def _export(storage: Any) -> tuple[bytes, int]:
    """The handle of the block that a storage is in, and where in the block it begins."""
    base, handle = ctypes.c_uint64(), _Handle()
    pointer = ctypes.c_uint64(storage.data_ptr())
    _driver("cuMemGetAddressRange_v2", ctypes.byref(base), None, pointer)
    _driver("cuIpcGetMemHandle", ctypes.byref(handle), pointer)
    return bytes(handle), pointer.value - base.value


def _reduce(tensor: Any) -> Any:
    """How a tensor is pickled for another process."""
    import torch
    from torch.multiprocessing import reductions

    storage = tensor.untyped_storage() if tensor.layout == torch.strided else None
    if (not tensor.is_cuda or storage is None or storage.nbytes() == 0 or
            torch.cuda.get_allocator_backend() != _BACKEND):
        return reductions.reduce_tensor(tensor)
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("a tensor that is part of a graph of autograd cannot be sent to another "
                           "process: detach() it")
    with torch.cuda.device(tensor.device):
        torch.cuda.current_stream().synchronize()
        handle, offset = _export(storage)
    return _rebuild, (type(tensor), tensor.device.index, handle, offset, storage.nbytes(),
                      _keep(storage), tensor.dtype, tensor.storage_offset(), tuple(tensor.size()),
                      tensor.stride(), tensor.requires_grad)


# ---- the process that receives ----

class _Received:
    """Memory of another process, mapped here as long as this object lives."""

    def __init__(self, handle: bytes, offset: int, size: int, place: tuple[int, int, int]) -> None:
        self.address = ctypes.c_uint64()
        self.place = place
        _driver("cuIpcOpenMemHandle_v2", ctypes.byref(self.address),
                _Handle.from_buffer_copy(handle), ctypes.c_uint(_LAZY_PEER_ACCESS))
        self.__cuda_array_interface__ = {"data": (self.address.value + offset, False),
                                         "shape": (size,), "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        if self.address.value != 0 and not sys.is_finalizing():
            _driver("cuIpcCloseMemHandle", self.address)
        _let_go(*self.place)


def _let_go(pid: int, file: int, slot: int) -> None:
    """Clears the byte of a storage; its process may have ended."""
    try:
        with open(f"/proc/{pid}/fd/{file}", "r+b", buffering=0) as used:
            used.seek(slot)
            used.write(b"\0")
    except OSError:
        pass


def _rebuild(kind: Any, device: int, handle: bytes, offset: int, size: int,
             place: tuple[int, int, int], dtype: Any, start: int, shape: tuple[int, ...],
             stride: tuple[int, ...], requires_grad: bool) -> Any:
    """The tensor that another process has sent."""
    import torch

    with torch.cuda.device(device):
        torch.cuda.synchronize()  # so that there is a context
        memory = torch.as_tensor(_Received(handle, offset, size, place), device="cuda")
        tensor = torch.empty(0, dtype=dtype, device=memory.device)
        tensor.set_(memory.untyped_storage(), start, shape, stride)
    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


# ---- the package's functions ----

def share_tensors() -> None:
    """Lets torch.multiprocessing send tensors on the GPU in tensor mode too. Call it in every
    process that sends, before it does; those that receive need this package, and both run under
    spillway. In other modes, and for other tensors, PyTorch's own way stays in use.

    The storage of a tensor is kept until the process that received it has let go of it. A process
    that is killed lets go of nothing, and a tensor that nobody takes out of a queue is kept."""
    if library.call("spillway_version") is None:
        return
    import torch
    from multiprocessing.reduction import ForkingPickler

    import torch.multiprocessing  # noqa: F401, which registers its own way

    for kind in (*torch._tensor_classes, torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, _reduce)


def collect_tensors() -> int:
    """Lets go of the storages that no other process uses any more, which the next tensor that is
    sent does as well. Returns how many are still in use."""
    with _lock:
        if _sent is None or _sent.pid != os.getpid():
            return 0
        _sent.collect()
        return len(_sent.storages)
