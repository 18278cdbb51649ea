"""Memory that other processes or libraries see."""
from features import MIB, Absent, RawTensor, feature, megabytes, refusal


@feature("_share_cuda_: the handle of a storage")
def share_cuda():
    import torch
    x = megabytes(4)
    handle = x.untyped_storage()._share_cuda_()
    return {"size": handle[2], "offset": handle[3], "device": handle[0],
            "allocated": torch.cuda.memory_allocated()}


@feature("reduce_tensor of torch.multiprocessing")
def reduce_tensor():
    from torch.multiprocessing.reductions import reduce_tensor as reduce
    x = megabytes(4)
    rebuild, arguments = reduce(x[MIB:])
    return {"function": rebuild.__name__, "size": tuple(arguments[1]), "offset": arguments[3],
            "bytes": arguments[8]}


def fill_it(queue, done):
    tensor = queue.get()
    tensor.fill_(7)
    import torch
    torch.cuda.synchronize()
    del tensor
    done.set()


@feature("a tensor through a queue of torch.multiprocessing to a spawned process")
def queue_of_tensors():
    import torch
    import torch.multiprocessing as processes
    context = processes.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    child = context.Process(target=fill_it, args=(queue, done), daemon=True)
    child.start()
    x = torch.ones(1000, dtype=torch.int32, device="cuda")
    queue.put(x)
    came = done.wait(30)
    child.join(30)
    return {"came": came, "exit": child.exitcode, "sum": x.sum().item()}


def send_one(queue, done):
    import torch
    queue.put(torch.full((1000,), 5, dtype=torch.int32, device="cuda"))
    done.wait(30)


@feature("a tensor from a spawned process")
def tensor_from_child():
    import torch.multiprocessing as processes
    context = processes.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    child = context.Process(target=send_one, args=(queue, done), daemon=True)
    child.start()
    x = queue.get(timeout=30)
    total = x.sum().item()
    del x
    done.set()
    child.join(30)
    return {"sum": total, "exit": child.exitcode}


@feature("share_memory_ of a tensor on the device changes nothing")
def share_memory():
    x = megabytes(1)
    return {"same": x.share_memory_() is x, "shared": x.is_shared(), "sum": x.sum().item()}


@feature("DLPack: out and in")
def dlpack():
    import torch
    x = torch.arange(100, device="cuda")
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    y += 1
    return {"sum": x.sum().item(), "device": x.__dlpack_device__()[1],
            "same": x.data_ptr() == y.data_ptr(), "allocated": torch.cuda.memory_allocated()}


@feature("DLPack keeps the memory alive")
def dlpack_keeps():
    import torch
    x = megabytes(4)
    capsule = torch.utils.dlpack.to_dlpack(x)
    del x
    held = torch.cuda.memory_allocated()
    del capsule
    return {"held": held, "after": torch.cuda.memory_allocated()}


@feature("DLPack with a stream")
def dlpack_stream():
    import torch
    x = torch.arange(100, device="cuda")
    stream = torch.cuda.Stream()
    capsule = x.__dlpack__(stream=stream.cuda_stream)
    with torch.cuda.stream(stream):
        y = torch.from_dlpack(capsule)
        total = y.sum().item()
    return {"sum": total}


@feature("__cuda_array_interface__: out and in")
def cuda_array_interface():
    import torch
    x = torch.arange(100, dtype=torch.int32, device="cuda")
    found = x.__cuda_array_interface__
    y = torch.as_tensor(RawTensor(x.data_ptr(), 400), device="cuda")
    return {"shape": found["shape"], "type": found["typestr"], "strides": found["strides"],
            "sum": y.view(torch.int32).sum().item()}


@feature("cudaIpcGetMemHandle of a tensor's memory")
def ipc_handle():
    import ctypes

    from features import runtime
    x = megabytes(4)
    handle = (ctypes.c_char * 64)()
    return {"error": runtime().cudaIpcGetMemHandle(handle, ctypes.c_void_p(x.data_ptr()))}


@feature("cudaPointerGetAttributes of a tensor's memory")
def pointer_attributes():
    import ctypes

    from features import runtime
    x = megabytes(4)

    class Attributes(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int), ("device", ctypes.c_int),
                    ("device_pointer", ctypes.c_void_p), ("host_pointer", ctypes.c_void_p),
                    ("reserved", ctypes.c_long * 8)]
    found = Attributes()
    error = runtime().cudaPointerGetAttributes(ctypes.byref(found),
                                               ctypes.c_void_p(x.data_ptr() + 5))
    return {"error": error, "type": found.type, "device": found.device,
            "same": found.device_pointer == x.data_ptr() + 5}


@feature("cudaMemcpy, cudaMemset by other libraries on a tensor's memory")
def foreign_copies():
    import ctypes

    import torch
    from features import runtime
    x = torch.zeros(1000, dtype=torch.uint8, device="cuda")
    address = ctypes.c_void_p(x.data_ptr())
    errors = [runtime().cudaMemset(address, 3, ctypes.c_size_t(500))]
    host = (ctypes.c_uint8 * 1000)()
    errors.append(runtime().cudaMemcpy(host, address, ctypes.c_size_t(1000), 2))
    return {"errors": errors, "sum": sum(host)}


@feature("a numpy array, a list and a memory view become tensors on the device")
def from_the_host():
    import numpy
    import torch
    return {"sums": [torch.as_tensor(source, device="cuda").sum().item()
                     for source in (numpy.arange(10), [1, 2, 3], numpy.ones((2, 3)))]}


@feature("ipc_collect after a tensor was shared and dropped")
def collected():
    import torch
    x = megabytes(4)
    x.untyped_storage()._share_cuda_()
    del x
    torch.cuda.ipc_collect()
    return {"limbo": torch.cuda.memory_allocated() > 0}


@feature("a shared tensor is written by the process that owns it afterwards")
def shared_and_written():
    x = megabytes(1)
    handle = x.untyped_storage()._share_cuda_()
    x += 1
    return {"bytes": len(handle[1]), "sum": x.sum().item()}


@feature("sharing a tensor that needs gradients is refused")
def shared_with_gradient():
    import torch
    from torch.multiprocessing.reductions import reduce_tensor as reduce
    x = torch.ones(10, device="cuda", requires_grad=True) * 2
    return {"error": refusal(reduce, x)}


@feature("numba's or cupy's way: an object with __cuda_array_interface__ from this tensor's bytes")
def array_of_others():
    import torch
    x = torch.arange(64, dtype=torch.uint8, device="cuda")
    other = RawTensor(x.data_ptr() + 16, 16)
    y = torch.as_tensor(other, device="cuda")
    if y.data_ptr() != x.data_ptr() + 16:
        raise Absent("PyTorch copies it")
    y.fill_(0)
    return {"sum": x.sum().item()}
