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
