#!/usr/bin/env python3
"""Runs a program on the simulated GPU with every operator of PyTorch on the CPU beside it, and
tells which of the small results that the host reads are those of a real run.

    beside.py OUTPUT [--every] SCRIPT [ARGUMENTS...]

OUTPUT (%r is the rank) gets one JSON object: the reads that the simulator counted, the known ones
(spillway_sim_reads), those that agree with the CPU, and where known ones do not. --every also
compares what each operator leaves, as far as it is known and small (spillway_sim_known).

Each storage on the GPU has a copy on the CPU, on which all operators run too, so the host reads
from both at the same place of the program. What an operator gives that the CPU does not have, and
random numbers, are numbers of our own there: nothing that is known may depend on them. What
the host or another process sends to the GPU is taken as it is, also where the program made it of a
wrong result; where a tensor's size differs, the copy goes on with the simulator's content.
"""
import collections
import ctypes
import json
import os
import runpy
import sys
import threading

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

MOST_BYTES = 4096  # of a small result
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5, torch.float64: 1e-5}
NOT_RUN = {"c10d", "_c10d_functional", "_c10d_functional_autograd"}  # they reach other processes
ONE_SIDED = {"send", "recv_", "recv_any_source_"}  # the other side may wait for what comes later
# The seed, which means nothing if nothing is dropped, and of the flash form a part without use.
UNWRITTEN = {"_scaled_dot_product_cudnn_attention", "_scaled_dot_product_efficient_attention",
             "_scaled_dot_product_flash_attention"}
EMPTY = {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided"}


class Simulator:
    """The simulated driver of this process."""

    def __init__(self):
        driver = ctypes.CDLL("libcuda.so.1")
        self.ask_reads = driver.spillway_sim_reads
        self.ask_reads.restype = ctypes.c_ulonglong
        self.ask_known = driver.spillway_sim_known
        self.ask_known.argtypes = [ctypes.c_ulonglong, ctypes.c_ulonglong]

    def reads(self):
        known = ctypes.c_ulonglong()
        return self.ask_reads(ctypes.byref(known)), known.value

    def is_known(self, tensor):
        return self.ask_known(tensor.data_ptr(), tensor.numel() * tensor.element_size()) == 1


def on_gpu(value):
    return isinstance(value, torch.Tensor) and value.device.type == "cuda"


def plain(tensor):
    """The tensors with storage that make up a tensor."""
    if tensor.layout == torch.strided:
        return [tensor]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    return []


class Copies:
    """The storages on the CPU, by those on the GPU."""

    def __init__(self):
        self.found = {}
        self.unwritten = set()  # storages on the GPU that hold what was left in their memory
        self.generator = torch.Generator().manual_seed(1)
        self.purge_at = 1000

    def view(self, tensor):
        """The tensor of the same shape and place in the copy of its storage."""
        if tensor.layout == torch.sparse_coo:
            parts = [self.view(part) for part in plain(tensor)]
            return torch.sparse_coo_tensor(*parts, tensor.size(), check_invariants=False,
                                           is_coalesced=tensor.is_coalesced())
        storage = tensor.untyped_storage()
        copy = self.of(storage)
        if copy is None:
            copy = self.make(storage)
            copy.copy_(storage)
        elif copy.nbytes() < storage.nbytes():
            copy.resize_(storage.nbytes())
        view = torch.empty(0, dtype=tensor.dtype).set_(
            copy, tensor.storage_offset(), tensor.size(), tensor.stride())
        view = view.conj() if tensor.is_conj() else view
        return view._neg_view() if tensor.is_neg() else view

    def of(self, storage):
        entry = self.found.get(storage._cdata)
        return entry[1] if entry is not None and not entry[0].expired() else None

    def make(self, storage):
        if len(self.found) > self.purge_at:
            self.found = {key: entry for key, entry in self.found.items()
                          if not entry[0].expired()}
            self.purge_at = 2 * len(self.found) + 1000
        copy = torch.UntypedStorage(storage.nbytes())
        self.unwritten.discard(storage._cdata)
        self.found[storage._cdata] = (StorageWeakRef(storage), copy)
        return copy

    def scramble(self, view):
        """Numbers of our own."""
        if view.dtype.is_floating_point and view.element_size() > 1:
            view.normal_(generator=self.generator)
        elif view.dtype.is_complex:
            self.scramble(torch.view_as_real(view))
        elif view.dtype.is_floating_point:
            self.scramble(view.view(torch.uint8))
        else:
            view.random_(0, 2, generator=self.generator)

    def adopt(self, tensor):
        """Takes over what the simulator has."""
        for part in plain(tensor):
            storage = part.untyped_storage()
            copy = self.of(storage) or self.make(storage)
            copy.resize_(storage.nbytes())
            copy.copy_(storage)
            self.unwritten.discard(storage._cdata)

    def add(self, tensor, result):
        """A new tensor of the GPU, whose content on the CPU is `result`, or not known if None."""
        sources = [None] * 2 if result is None else plain(result)
        for part, source in zip(plain(tensor), sources):
            if self.of(part.untyped_storage()) is None:
                self.make(part.untyped_storage())
            if source is None:
                self.scramble(self.view(part))
            elif source.size() == part.size():
                self.view(part).copy_(source)
            else:
                self.adopt(part)

    def note(self, tensor, is_written):
        """Whether an operator has written to the storage since it was made."""
        for part in plain(tensor):
            change = self.unwritten.discard if is_written else self.unwritten.add
            change(part.untyped_storage()._cdata)

    def lacks(self, tensor):
        return any(self.of(part.untyped_storage()) is None for part in plain(tensor))


def agree(actual, expected):
    """True if two results are alike, as far as arithmetic is exact."""
    if not isinstance(actual, torch.Tensor):
        if type(actual) is not type(expected):
            return False
        actual, expected = torch.tensor(actual), torch.tensor(expected)
        tolerance = 1e-5
    else:
        tolerance = TOLERANCE.get(actual.dtype, 0)
    if not isinstance(expected, torch.Tensor) or actual.shape != expected.shape:
        return False
    if actual.dtype.is_floating_point or actual.dtype.is_complex:
        wide = torch.complex128 if actual.dtype.is_complex else torch.float64
        return torch.allclose(actual.to(wide), expected.to(wide), rtol=tolerance,
                              atol=tolerance * 1e-2, equal_nan=True)
    return torch.equal(actual, expected)


def site():
    """The innermost line of Python outside PyTorch and of this file."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name != __file__ and "/torch/" not in name and not name.startswith("<"):
            return f"{'/'.join(name.rsplit('/', 2)[-2:])}:{frame.f_lineno}"
        frame = frame.f_back
    return "backward"


class Beside(TorchDispatchMode):
    """Runs each operator on the CPU too, and compares what the host reads."""

    def __init__(self, every):
        super().__init__()
        self.every = every
        self.simulator = Simulator()
        self.copies = Copies()
        self.lock = threading.RLock()
        self.counts = collections.Counter()
        self.places = {}  # (operator, site): [reads, known, true]
        self.faults = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        leaves, _ = tree_flatten((args, kwargs))
        device = kwargs.get("device")
        uses_gpu = any(on_gpu(leaf) for leaf in leaves) or (
            device is not None and torch.device(device).type == "cuda")
        if not uses_gpu or torch.cuda.is_current_stream_capturing():
            return func(*args, **kwargs)
        # Parameters without a shape yet refuse to be asked.
        with self.lock, torch._C.DisableTorchFunctionSubclass():
            return self.run(func, args, kwargs)

    def written(self, func, args, kwargs):
        """The arguments that the operator writes to."""
        found = []
        for index, argument in enumerate(func._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            found += [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]
        return found

    def run(self, func, args, kwargs):
        written = self.written(func, args, kwargs)
        twins = {}  # of tensors that are arguments, by id

        def twin(value):
            if isinstance(value, torch.Tensor):
                if id(value) not in twins:
                    twins[id(value)] = self.twin(value, written)
                return twins[id(value)]
            if isinstance(value, torch.device) and value.type == "cuda":
                return torch.device("cpu")
            return value

        cpu_args, cpu_kwargs = tree_map(twin, (args, kwargs))
        if kwargs.get("pin_memory"):
            cpu_kwargs["pin_memory"] = False
        before = self.simulator.reads()
        out = func(*args, **kwargs)
        if any(isinstance(leaf, torch.Tensor) and leaf.device.type == "cpu"
               for leaf in [*written, *tree_flatten(out)[0]]):
            torch.cuda.synchronize()  # it may be written to later
        after = self.simulator.reads()
        result = self.on_cpu(func, cpu_args, cpu_kwargs)
        if result is None:
            for tensor in filter(on_gpu, written):
                for part in plain(twins[id(tensor)]):
                    self.copies.scramble(part)
        if after[0] > before[0]:
            pairs = [(tensor, twins[id(tensor)]) for tensor in written if not on_gpu(tensor)]
            self.judge(func, out, result, pairs, after[0] - before[0], after[1] - before[1])
        self.follow(func, out, result, written)
        return out

    def twin(self, tensor, written):
        if on_gpu(tensor):
            return self.copies.view(tensor)
        return tensor.clone() if any(tensor is other for other in written) else tensor

    def on_cpu(self, func, args, kwargs):
        """The results of an operator, as a list; None if there are none to compare with."""
        packet = func._overloadpacket.__name__
        if (func.namespace in NOT_RUN or packet in EMPTY or
                torch.Tag.nondeterministic_seeded in func.tags):
            return None
        try:
            return tree_flatten(func(*args, **kwargs))[0]
        except (RuntimeError, NotImplementedError, IndexError, TypeError, ValueError):
            self.counts["operators without a CPU"] += 1
            return None

    def judge(self, func, out, result, pairs, reads, known):
        """Counts reads by whether what they led to is as on the CPU."""
        leaves = tree_flatten(out)[0]
        pairs = list(pairs)
        for index, leaf in enumerate(leaves):
            expected = result[index] if result is not None and index < len(result) else None
            if leaf is None or isinstance(leaf, torch.ScriptObject):
                continue
            if not isinstance(leaf, torch.Tensor) or leaf.device.type == "cpu":
                pairs.append((leaf, expected))
            elif torch.Tag.dynamic_output_shape in func.tags:
                pairs.append((list(leaf.shape),
                              None if expected is None else list(expected.shape)))
        same = all(actual == expected if isinstance(actual, list) else agree(actual, expected)
                   for actual, expected in pairs)
        place = self.places.setdefault((str(func), site()), [0, 0, 0])
        for index, count in enumerate((reads, known, reads if same and pairs else 0)):
            place[index] += count
        self.counts["reads"] += reads
        self.counts["known"] += known
        if not pairs:
            self.counts["inside"] += reads  # it decides on nothing that can be seen
            self.counts["known inside"] += known
        elif same:
            self.counts["true"] += reads
            self.counts["known and true"] += known
        elif known == reads:
            self.counts["false"] += reads
            self.fault(func, "read", pairs)

    def fault(self, func, what, pairs):
        if len(self.faults) < 20:
            self.faults.append({"operator": str(func), "site": site(), "what": what, "values": [
                [str(actual)[:200], str(expected)[:200]] for actual, expected in pairs]})

    def follow(self, func, out, result, written):
        """Gives new tensors their copies, and compares what is known."""
        if func.namespace in NOT_RUN:
            self.complete(func, out)
            for tensor in filter(on_gpu, [*written, *tree_flatten(out)[0]]):
                self.copies.adopt(tensor)
            return
        leaves = [(index, leaf) for index, leaf in enumerate(tree_flatten(out)[0]) if on_gpu(leaf)]
        for index, leaf in [pair for pair in leaves if self.copies.lacks(pair[1])]:
            self.copies.add(leaf, result[index] if result is not None and index < len(result)
                            else None)
            if func._overloadpacket.__name__ in EMPTY:
                self.copies.note(leaf, is_written=False)
        for tensor in filter(on_gpu, written):
            self.copies.note(tensor, is_written=True)
        if self.every and func._overloadpacket.__name__ not in EMPTY | UNWRITTEN:
            for tensor in [*filter(on_gpu, written), *(leaf for _, leaf in leaves)]:
                self.compare(func, tensor)

    def complete(self, func, out):
        """Waits for a collective: a thread of gloo writes its results after it has returned."""
        if func._overloadpacket.__name__ not in ONE_SIDED:
            for leaf in tree_flatten(out)[0]:
                if isinstance(leaf, torch.ScriptObject):
                    torch.distributed.Work.unbox(leaf).wait()
        torch.cuda.synchronize()

    def compare(self, func, tensor):
        """Whether the known content of a tensor is that of the CPU."""
        if (tensor.layout != torch.strided or not tensor.is_contiguous() or tensor.is_conj() or
                tensor.is_neg() or not 0 < tensor.numel() * tensor.element_size() <= MOST_BYTES):
            return
        if tensor.untyped_storage()._cdata in self.copies.unwritten:
            return  # a view of memory that still holds what others left there
        torch.cuda.synchronize()
        if not self.simulator.is_known(tensor):
            return
        actual, expected = tensor.cpu(), self.copies.view(tensor)
        self.counts["compared"] += 1
        if not agree(actual, expected):
            self.counts["wrong"] += 1
            self.fault(func, "left", [(actual, expected)])
            self.copies.adopt(tensor)

    def report(self):
        return {"counts": dict(self.counts), "faults": self.faults,
                "places": [[*place, *counts] for place, counts in self.places.items()]}


def settle_backward():
    """The thread of the backward pass drops Python objects after the pass has returned, and the
    process dies if it does so while the interpreter ends. A pass without any comes after that."""
    if torch.cuda.is_initialized():
        torch.ones(1, device="cuda", requires_grad=True).sum().backward()


def main(argv):
    path = argv[1].replace("%r", os.environ.get("RANK", "0"))
    every = argv[2] == "--every"
    script = argv[3 if every else 2:]
    sys.argv = script
    sys.path[0] = os.path.dirname(os.path.abspath(script[0]))
    beside = Beside(every)
    replay = torch.cuda.CUDAGraph.replay

    def replay_and_follow(graph):
        replay(graph)
        beside.copies.found.clear()  # what the graph has written is taken from the simulator

    torch.cuda.CUDAGraph.replay = replay_and_follow
    try:
        with beside:
            runpy.run_path(script[0], run_name="__main__")
        settle_backward()
    finally:
        with open(path, "w") as output:
            json.dump(beside.report(), output)


if __name__ == "__main__":
    main(sys.argv)
