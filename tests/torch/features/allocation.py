"""Tensors and raw memory from PyTorch's allocator."""
from features import HUGE, MIB, feature, megabytes, refusal


@feature("tensors of several sizes, and what stays of them when they are deleted")
def allocate_and_delete():
    import torch
    kept = [torch.empty(size, dtype=torch.uint8, device="cuda")
            for size in (1, 511, 512, 513, MIB - 1, MIB, MIB + 1, 10 * MIB, 100 * MIB)]
    now = torch.cuda.memory_allocated()
    del kept[::2]
    return {"allocated": now, "after": torch.cuda.memory_allocated(),
            "peak": torch.cuda.max_memory_allocated()}


@feature("torch.cuda.empty_cache with nothing left")
def empty_cache():
    import torch
    x = megabytes(64)
    before = torch.cuda.memory_allocated()
    del x
    torch.cuda.empty_cache()
    return {"before": before, "allocated": torch.cuda.memory_allocated(),
            "reserved": torch.cuda.memory_reserved()}


@feature("torch.cuda.caching_allocator_alloc and _delete")
def caching_allocator_alloc():
    import torch
    address = torch.cuda.caching_allocator_alloc(3 * MIB)
    held = torch.cuda.memory_allocated()
    torch.cuda.caching_allocator_delete(address)
    return {"aligned": address % 512, "held": held, "after": torch.cuda.memory_allocated()}


@feature("torch.cuda.caching_allocator_alloc on a stream, by object and by number")
def caching_allocator_alloc_on_stream():
    import torch
    stream = torch.cuda.Stream()
    first = torch.cuda.caching_allocator_alloc(MIB, stream=stream)
    second = torch.cuda.caching_allocator_alloc(MIB, device=0, stream=stream.cuda_stream)
    held = torch.cuda.memory_allocated()
    torch.cuda.caching_allocator_delete(first)
    torch.cuda.caching_allocator_delete(second)
    return {"held": held, "apart": first != second, "after": torch.cuda.memory_allocated()}


@feature("torch.cuda.caching_allocator_enable: off and on")
def caching_allocator_enable():
    import torch
    torch.cuda.caching_allocator_enable(False)
    x = torch.full((1000,), 3, device="cuda")
    total = x.sum().item()
    del x
    torch.cuda.caching_allocator_enable(True)
    y = torch.full((1000,), 4, device="cuda")
    return {"off": total, "on": y.sum().item()}


@feature("raw memory while the cache is off, and its end")
def raw_without_cache():
    import torch
    x = megabytes(1)
    torch.cuda.caching_allocator_enable(False)
    address = torch.cuda.caching_allocator_alloc(MIB)
    held = torch.cuda.memory_allocated()
    torch.cuda.caching_allocator_delete(address)
    torch.cuda.caching_allocator_enable(True)
    return {"held": held, "after": torch.cuda.memory_allocated(), "sum": x.sum().item()}


@feature("resize_ of a storage to 0 and back")
def storage_resize():
    import torch
    x = megabytes(8)
    sizes = []
    for size in (0, 4 * MIB, 16 * MIB, 0):
        x.untyped_storage().resize_(size)
        sizes.append(torch.cuda.memory_allocated())
    return {"allocated": sizes}


@feature("resize_ of a tensor keeps its content")
def tensor_resize():
    import torch
    x = torch.arange(1000, device="cuda")
    x.resize_(2000)
    return {"content": x[:1000].sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("tensors without elements")
def zero_size():
    import torch
    kept = [torch.empty(shape, device="cuda") for shape in ((0,), (0, 5), (3, 0, 2))]
    return {"addresses": [x.data_ptr() for x in kept], "allocated": torch.cuda.memory_allocated(),
            "sum": kept[0].sum().item()}


@feature("a request larger than any device, and the next one")
def huge_request():
    import torch
    error = refusal(torch.empty, HUGE, dtype=torch.uint8, device="cuda")
    return {"error": error.partition(" GPU 0 has")[0], "then": megabytes(1).sum().item()}


@feature("a thousand small tensors, freed in another order")
def small_tensors():
    import torch
    kept = [torch.full((i + 1,), i, dtype=torch.int32, device="cuda") for i in range(1000)]
    now = torch.cuda.memory_allocated()
    del kept[::3]
    middle = torch.cuda.memory_allocated()
    content = sum(int(x[0]) for x in kept[::100])
    kept.clear()
    return {"allocated": [now, middle, torch.cuda.memory_allocated()], "content": content}


@feature("blocks of one size are found again by the same stream")
def reuse():
    import torch
    addresses = set()
    for _ in range(10):
        x = megabytes(4)
        addresses.add(x.data_ptr())
        del x
    return {"addresses": len(addresses), "peak": torch.cuda.max_memory_allocated()}


@feature("set_per_process_memory_fraction refuses at the limit")
def memory_fraction():
    import torch
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(0.25)
    kept, refused = [], 0
    for _ in range(6):
        try:
            kept.append(torch.empty(total // 16, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            refused += 1
    torch.cuda.set_per_process_memory_fraction(1.0)
    kept.append(torch.empty(total // 16, dtype=torch.uint8, device="cuda"))
    return {"refused": refused, "kept": len(kept)}


@feature("get_per_process_memory_fraction before and after it is set")
def memory_fraction_read():
    import torch
    before = torch.cuda.get_per_process_memory_fraction()
    torch.cuda.set_per_process_memory_fraction(before)
    torch.cuda.set_per_process_memory_fraction(0.5)
    return {"before": before, "after": torch.cuda.get_per_process_memory_fraction(),
            "bad": refusal(torch.cuda.set_per_process_memory_fraction, 1.5)}


@feature("torch.cuda.memory.get_allocator_backend and _get_current_allocator")
def allocator_names():
    import torch
    return {"backend": torch.cuda.get_allocator_backend(),
            "current": type(torch.cuda.memory._get_current_allocator()).__name__}


@feature("a tensor over the address of another, by _construct_storage_from_data_pointer")
def storage_from_address():
    import torch
    x = torch.arange(256, dtype=torch.uint8, device="cuda")
    storage = torch._C._construct_storage_from_data_pointer(x.data_ptr(), x.device, 256)
    y = torch.empty(0, dtype=torch.uint8, device="cuda").set_(storage)
    return {"sum": y.sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("views keep their storage alive, clones do not")
def views_and_clones():
    import torch
    x = megabytes(16)
    view = x[:100]
    del x
    with_view = torch.cuda.memory_allocated()
    clone = view.clone()
    del view
    return {"view": with_view, "clone": torch.cuda.memory_allocated(), "sum": clone.sum().item()}


@feature("set_ and untyped storages that are shared by tensors")
def shared_storage():
    import torch
    storage = torch.UntypedStorage(4 * MIB, device="cuda")
    views = [torch.empty(0, dtype=kind, device="cuda").set_(storage)
             for kind in (torch.uint8, torch.float32, torch.float64)]
    views[0].fill_(1)
    return {"values": [views[1].numel(), views[2].numel(), int(views[1].view(torch.int32)[5])],
            "allocated": torch.cuda.memory_allocated(), "bytes": storage.nbytes()}


@feature("copy and fill of an untyped storage, and its move to the host")
def storage_copies():
    import torch
    storage = torch.UntypedStorage(1000, device="cuda").fill_(7)
    other = torch.UntypedStorage(1000, device="cuda")
    other.copy_(storage)
    host = other.cpu()
    return {"value": host[999], "clone": storage.clone()[0], "back": host.cuda()[3],
            "allocated": torch.cuda.memory_allocated()}


@feature("to, cuda, cpu, non_blocking copies with pinned memory")
def copies_with_the_host():
    import torch
    host = torch.arange(1 << 16, dtype=torch.int64).pin_memory()
    x = host.to("cuda", non_blocking=True)
    y = torch.empty_like(host, pin_memory=True).copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    return {"sum": y.sum().item(), "equal": torch.equal(host, x.cpu()), "pinned": y.is_pinned(),
            "allocated": torch.cuda.memory_allocated()}


@feature("memory formats and strides: channels_last, as_strided, contiguous")
def memory_formats():
    import torch
    x = torch.zeros(4, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last)
    y = torch.empty_strided((100, 100), (1, 200), device="cuda")
    z = y.contiguous()
    return {"strides": [x.stride(), y.stride(), z.stride()],
            "allocated": torch.cuda.memory_allocated()}


@feature("cat, stack, repeat, expand: sizes of results")
def joined_tensors():
    import torch
    x = torch.arange(1000, device="cuda")
    made = [torch.cat([x, x, x]), torch.stack([x] * 4), x.repeat(5), x.expand(100, 1000)]
    return {"sums": [int(y[-1].sum()) for y in made[:2]],
            "allocated": torch.cuda.memory_allocated(), "peak": torch.cuda.max_memory_allocated()}


@feature("torch.cuda.mem_get_info moves with what is allocated")
def mem_get_info():
    import torch
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    before, total = torch.cuda.mem_get_info()
    x = megabytes(1024)
    torch.cuda.synchronize()
    after, same = torch.cuda.mem_get_info()
    return {"less by MiB": round((before - after) / MIB / 64) * 64, "total": total,
            "constant": total == same, "held": x.numel()}


@feature("torch.cuda.device_memory_used and get_device_properties")
def device_properties():
    import torch
    found = torch.cuda.get_device_properties(0)
    return {"total": found.total_memory, "name": found.name,
            "count": torch.cuda.device_count(), "capability": torch.cuda.get_device_capability()}


@feature("garbage of reference cycles is freed by gc.collect")
def reference_cycles():
    import gc

    import torch
    gc.disable()

    class Node:
        pass
    node = Node()
    node.itself, node.tensor = node, megabytes(32)
    del node
    before = torch.cuda.memory_allocated()
    gc.collect()
    return {"before": before, "after": torch.cuda.memory_allocated()}


@feature("weak references to tensors and storages")
def weak_references():
    import weakref

    from torch.multiprocessing.reductions import StorageWeakRef
    x = megabytes(2)
    tensor, storage = weakref.ref(x), StorageWeakRef(x.untyped_storage())
    alive = tensor() is not None, storage.expired()
    del x
    return {"alive": alive, "dead": (tensor() is not None, storage.expired())}


@feature("memory of the caching host allocator: pinned tensors are reused")
def pinned_memory():
    import torch
    torch.zeros(1, device="cuda")
    x = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    address = x.data_ptr()
    del x
    y = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    return {"again": y.data_ptr() == address, "pinned": y.is_pinned()}


@feature("cudaHostRegister of the host's own memory")
def host_register():
    import torch
    torch.zeros(1, device="cuda")
    x = torch.ones(MIB, dtype=torch.uint8)
    runtime = torch.cuda.cudart()
    answers = [int(runtime.cudaHostRegister(x.data_ptr(), MIB, 0))]
    pinned = x.is_pinned()
    total = x.cuda(non_blocking=True).sum().item()
    answers.append(int(runtime.cudaHostUnregister(x.data_ptr())))
    return {"answers": answers, "pinned": pinned, "sum": total}


@feature("cudaMemGetInfo and cudaProfilerStart through torch.cuda.cudart")
def runtime_binding():
    import torch
    torch.zeros(1, device="cuda")
    runtime = torch.cuda.cudart()
    return {"total": runtime.cudaMemGetInfo(0)[1], "start": int(runtime.cudaProfilerStart()),
            "stop": int(runtime.cudaProfilerStop())}


@feature("managed memory as a tensor, through cudaMallocManaged")
def managed_memory():
    import ctypes

    import torch
    from features import RawTensor, runtime
    torch.zeros(1, device="cuda")
    address = ctypes.c_void_p()
    error = runtime().cudaMallocManaged(ctypes.byref(address), ctypes.c_size_t(MIB), 1)
    x = torch.as_tensor(RawTensor(address.value, MIB), device="cuda")
    x.fill_(5)
    torch.cuda.synchronize()
    host = ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8))
    return {"error": error, "host": [host[0], host[MIB - 1]],
            "allocated": torch.cuda.memory_allocated()}


@feature("memory of cudaMalloc beside PyTorch's")
def foreign_memory():
    import torch
    from features import RawTensor, raw_memory
    before = torch.cuda.memory_allocated()
    x = torch.as_tensor(RawTensor(raw_memory(MIB), MIB), device="cuda")
    x.fill_(3)
    return {"sum": x.sum().item(), "more": torch.cuda.memory_allocated() - before}


@feature("torch.cuda.empty_cache gives unused memory back to the device")
def empty_cache_frees():
    import torch
    torch.zeros(1, device="cuda")
    before = torch.cuda.mem_get_info()[0]
    x = megabytes(1024)
    del x
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return {"missing": round((before - torch.cuda.mem_get_info()[0]) / MIB / 128)}


@feature("torch.cuda.ipc_collect with nothing shared")
def ipc_collect():
    import torch
    x = megabytes(1)
    torch.cuda.ipc_collect()
    return {"sum": x.sum().item()}


@feature("cuBLAS's workspaces: made by a product, dropped by _cuda_clearCublasWorkspaces")
def cublas_workspaces():
    import torch
    x = torch.ones(64, 64, device="cuda")
    before = torch.cuda.memory_allocated()
    y = x @ x
    torch.cuda.synchronize()
    with_one = torch.cuda.memory_allocated() - before
    torch._C._cuda_clearCublasWorkspaces()
    return {"with": with_one, "without": torch.cuda.memory_allocated() - before,
            "shape": tuple(y.shape)}


@feature("_cuda_cudaCachingAllocator_raw_alloc and _raw_delete")
def raw_alloc():
    import torch
    torch.zeros(1, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    address = torch._C._cuda_cudaCachingAllocator_raw_alloc(MIB, stream)
    held = torch.cuda.memory_allocated()
    torch._C._cuda_cudaCachingAllocator_raw_delete(address)
    return {"held": held, "after": torch.cuda.memory_allocated()}


@feature("an unknown address given to caching_allocator_delete")
def delete_of_unknown():
    import torch
    torch.zeros(1, device="cuda")
    return {"error": refusal(torch.cuda.caching_allocator_delete, 0x1234000)}


@feature("torch.empty with a storage larger than 4 GiB")
def large_tensor():
    import torch
    x = torch.empty(5 << 30, dtype=torch.uint8, device="cuda")
    x[-1] = 9
    return {"last": x[-1].item(), "allocated": torch.cuda.memory_allocated()}


@feature("growth by turns: a list of tensors is replaced by larger ones")
def growing_tensors():
    import torch
    kept, sizes = [], []
    for turn in range(1, 9):
        kept = [torch.empty(turn * 100_000 + i, dtype=torch.uint8, device="cuda")
                for i in range(10)]
        sizes.append(torch.cuda.memory_allocated())
    return {"allocated": sizes, "peak": torch.cuda.max_memory_allocated(), "kept": len(kept)}


@feature("numpy, tolist, item, bool and print of tensors on the device")
def read_by_the_host():
    import torch
    x = torch.arange(6, device="cuda").reshape(2, 3)
    return {"list": x.tolist(), "bool": bool((x == x).all()), "text": repr(x),
            "format": f"{x[0, 2]}", "numpy": x.cpu().numpy().sum()}
