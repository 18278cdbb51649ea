"""Runs a training script with memory short once at the beginning, and notes what its operators use.

    torch_operators.py SCRIPT [ARGUMENTS...]

The access log is open from then on. OPERATORS_LOG names a file, to which the driver and spillway
write, too. The line `operator first` stands there before the script begins, `operator begin NAME`
before the work of an operator, and `operator end NAME ADDRESS+BYTES...` behind it with the memory
of its arguments and results.
"""
import os
import pathlib
import runpy
import sys

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

MIB = 1 << 20
LOG = os.open(os.environ["OPERATORS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


# Arguments of which an operator reads the sizes alone: their places, by the operator's name. The
# names are those of native_functions.yaml and derivatives.yaml of PyTorch.
SIZES_ONLY = {
    "aten.zeros_like.default": {0}, "aten.ones_like.default": {0}, "aten.empty_like.default": {0},
    "aten.full_like.default": {0}, "aten.rand_like.default": {0}, "aten.randn_like.default": {0},
    "aten.new_zeros.default": {0}, "aten.new_ones.default": {0}, "aten.new_empty.default": {0},
    "aten.new_full.default": {0}, "aten.new_empty_strided.default": {0},
    "aten.nll_loss_backward.default": {1}, "aten.nll_loss2d_backward.default": {1},  # self
    "aten.max_pool2d_with_indices_backward.default": {1},  # self: the indices tell all
    "aten.native_layer_norm_backward.default": {6},  # bias
}


def unread(name, args):
    """The places of the arguments that an operator does not read in this call."""
    if name == "aten.convolution_backward.default":  # the last argument tells what is computed
        return {place for place, computed in ((2, args[10][0]), (1, args[10][1])) if not computed}
    return SIZES_ONLY.get(name, ())


def say(*words):
    os.write(LOG, (" ".join(["operator", *words]) + "\n").encode())


def words(tensors):
    """The memory of the tensors that are on the device."""
    found = set()
    for tensor in tensors:
        if tensor.layout is torch.sparse_coo:
            found.update(words([tensor._indices(), tensor._values()]))
        elif tensor.is_cuda and tensor.untyped_storage().nbytes() > 0:
            storage = tensor.untyped_storage()
            found.add(f"{storage.data_ptr():#x}+{storage.nbytes()}")
    return sorted(found)


def tensors_of(values):
    return [value for value in pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]


class Noted(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        say("begin", str(func))
        result = func(*args, **(kwargs or {}))
        given = [arg for at, arg in enumerate(args) if at not in unread(str(func), args)]
        say("end", str(func), *words(tensors_of((given, kwargs, result))))
        return result


def run_short():
    """Allocates more than there is room for."""
    free, _ = torch.cuda.mem_get_info()
    held = [torch.empty(size, dtype=torch.uint8, device="cuda")
            for size in (free - 64 * MIB, 256 * MIB)]
    torch.cuda.synchronize()
    del held


def main():
    script = pathlib.Path(sys.argv[1])
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(script.parent))
    run_short()
    say("first")
    with Noted():
        runpy.run_path(str(script), run_name="__main__")
    torch.cuda.synchronize()
    sys.stdout.flush()
    os._exit(0)  # a thread of PyTorch sometimes ends the process with an error when it exits


if __name__ == "__main__":
    main()
