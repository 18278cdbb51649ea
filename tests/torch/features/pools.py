"""MemPool, and allocators of the user's."""
from features import MIB, Absent, feature, megabytes, need_name, raw_memory, refusal

ALLOCATOR = """
#include <stddef.h>
#include <sys/types.h>
int cudaMalloc(void **, size_t);
int cudaFree(void *);
long calls;
void *my_malloc(ssize_t size, int device, void *stream)
{
    void *address = 0;
    calls++;
    return cudaMalloc(&address, size) ? 0 : address;
}
void my_free(void *address, ssize_t size, int device, void *stream) { cudaFree(address); }
"""


def pluggable():
    """An allocator of a library that is compiled here, and the library."""
    import ctypes
    import shutil
    import subprocess

    import torch
    if not shutil.which("cc"):
        raise Absent("no C compiler")
    with open("allocator.c", "w") as file:
        file.write(ALLOCATOR)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "./allocator.so", "allocator.c"], check=True)
    return (torch.cuda.memory.CUDAPluggableAllocator("./allocator.so", "my_malloc", "my_free"),
            ctypes.CDLL("./allocator.so"))


def calls(library):
    import ctypes
    return ctypes.c_long.in_dll(library, "calls").value


@feature("a MemPool: allocations in it and outside")
def mem_pool():
    import torch
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = megabytes(4)
    y = megabytes(4)
    return {"allocated": torch.cuda.memory_allocated(), "sums": [x.sum().item(), y.sum().item()]}


@feature("a MemPool's segments are apart from others'")
def mem_pool_isolates():
    import torch
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = megabytes(4)
        address = x.data_ptr()
        del x
    y = megabytes(4)
    with torch.cuda.use_mem_pool(pool):
        z = megabytes(4)
    return {"apart": y.data_ptr() != address, "again": z.data_ptr() == address}


@feature("snapshot of a MemPool")
def mem_pool_snapshot():
    import torch
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = megabytes(30)
    outside = megabytes(5)
    segments = pool.snapshot()
    return {"sizes": [segment["allocated_size"] for segment in segments],
            "ids": [segment["segment_pool_id"] == pool.id for segment in segments],
            "kept": [x.numel(), outside.numel()]}


@feature("MemPools one in another")
def mem_pools_nested():
    import torch
    outer, inner = torch.cuda.MemPool(), torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(outer):
        x = megabytes(2)
        with torch.cuda.use_mem_pool(inner):
            y = megabytes(3)
        z = megabytes(4)
    return {"sizes": [sum(segment["allocated_size"] for segment in pool.snapshot())
                      for pool in (outer, inner)], "kept": [len(x), len(y), len(z)]}


@feature("a MemPool with use_on_oom", since=(2, 8))
def mem_pool_use_on_oom():
    import torch
    need_name(torch.cuda.MemPool(), "use_count")
    pool = torch.cuda.MemPool(use_on_oom=True)
    with torch.cuda.use_mem_pool(pool):
        x = megabytes(2)
    return {"allocated": torch.cuda.memory_allocated(), "kept": x.numel()}


@feature("a MemPool with no_split", since=(2, 10))
def mem_pool_no_split():
    import torch
    pool = torch.cuda.MemPool(no_split=True)
    with torch.cuda.use_mem_pool(pool):
        kept = [torch.ones(1000, device="cuda") for _ in range(3)]
    segments = pool.snapshot()
    return {"blocks": [len(segment["blocks"]) for segment in segments], "kept": len(kept)}


@feature("use_count of a MemPool, and its id")
def mem_pool_use_count():
    import torch
    pool = torch.cuda.MemPool()
    before = pool.use_count()
    with torch.cuda.use_mem_pool(pool):
        during = pool.use_count()
    return {"counts": [before, during, pool.use_count()], "id": len(pool.id)}


@feature("a MemPool that is deleted while its tensors live")
def mem_pool_deleted_first():
    import torch
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.full((100,), 7, device="cuda")
    del pool
    torch.cuda.empty_cache()
    total = x.sum().item()
    del x
    return {"sum": total, "allocated": torch.cuda.memory_allocated()}


@feature("empty_cache inside a MemPool and after it")
def mem_pool_empty_cache():
    import torch
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = megabytes(30)
        del x
        torch.cuda.empty_cache()
    del pool
    torch.cuda.empty_cache()
    return {"reserved": torch.cuda.memory_reserved()}


@feature("a MemPool used from two streams and two threads")
def mem_pool_threads():
    import threading

    import torch
    pool = torch.cuda.MemPool()
    sums = []

    def work(count):
        with torch.cuda.use_mem_pool(pool):
            sums.append(megabytes(count).sum().item() // MIB)
    for count in (1, 2):
        thread = threading.Thread(target=work, args=(count,))
        thread.start()
        thread.join()
    return {"sums": sums, "allocated": torch.cuda.memory_allocated()}


@feature("a graph captured into the pool of a MemPool")
def mem_pool_of_graph():
    import torch
    pool = torch.cuda.MemPool()
    x = torch.ones(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool.id):
        y = x * 3
    graph.replay()
    return {"sum": y.sum().item(), "blocks": len(pool.snapshot()) > 0}


@feature("a MemPool with an allocator of the user's")
def mem_pool_pluggable():
    import torch
    allocator, library = pluggable()
    pool = torch.cuda.MemPool(allocator.allocator())
    with torch.cuda.use_mem_pool(pool):
        x = megabytes(4)
    y = megabytes(4)
    return {"calls": calls(library), "sums": [x.sum().item(), y.sum().item()]}


@feature("the offload of a MemPool as vLLM's sleep mode does it: copy out, free, copy back")
def mem_pool_sleep():
    import torch
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.arange(1 << 16, device="cuda")
    host = x.cpu()
    x.untyped_storage().resize_(0)
    asleep = torch.cuda.memory_allocated()
    with torch.cuda.use_mem_pool(pool):
        x.untyped_storage().resize_(host.untyped_storage().nbytes())
    x.copy_(host)
    return {"asleep": asleep, "sum": x.sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("_cuda_beginAllocateCurrentThreadToPool and _cuda_releasePool", since=(2, 9))
def pool_of_the_current_thread():
    import torch
    torch.zeros(1, device="cuda")
    pool = torch.cuda.graph_pool_handle()
    torch._C._cuda_beginAllocateCurrentThreadToPool(0, pool)
    x = megabytes(30)
    torch._C._cuda_endAllocateToPool(0, pool)
    torch._C._cuda_releasePool(0, pool)
    return {"sum": x.sum().item()}


@feature("CUDAPluggableAllocator in the place of PyTorch's")
def pluggable_allocator():
    import torch
    allocator, library = pluggable()
    torch.cuda.memory.change_current_allocator(allocator)
    x = torch.full((100,), 2, device="cuda")
    return {"sum": x.sum().item(), "calls": calls(library) > 0,
            "backend": torch.cuda.get_allocator_backend(),
            "pinned": torch.empty(100, pin_memory=True).is_pinned()}


@feature("CUDAPluggableAllocator: training, and figures that it does not have")
def pluggable_allocator_trains():
    import torch
    allocator, library = pluggable()
    torch.cuda.memory.change_current_allocator(allocator)
    model = torch.nn.Linear(8, 8).cuda()
    model(torch.ones(2, 8, device="cuda")).sum().backward()
    return {"figures": refusal(torch.cuda.memory_allocated),
            "gradient": tuple(model.weight.grad.shape), "calls": calls(library) > 0}


@feature("change_current_allocator after memory was used is refused")
def allocator_changed_late():
    import torch
    allocator, _ = pluggable()
    x = megabytes(1)
    return {"error": refusal(torch.cuda.memory.change_current_allocator, allocator),
            "sum": x.sum().item()}


@feature("memory of another library beside a MemPool")
def foreign_memory_in_pool():
    import torch
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        address = raw_memory(MIB)
        x = megabytes(2)
    return {"apart": x.data_ptr() != address, "allocated": torch.cuda.memory_allocated()}


@feature("two requests in a MemPool of which the second is larger than the first's block")
def mem_pool_grows():
    import torch
    pool = torch.cuda.MemPool()
    sizes = []
    for count in (600, 700):
        with torch.cuda.use_mem_pool(pool):
            x = torch.empty(count * MIB, dtype=torch.uint8, device="cuda")
        sizes.append(torch.cuda.memory_allocated())
        del x
    return {"allocated": sizes}
