"""Two devices."""
from features import MIB, feature


def two(count=1):
    """A tensor of so many MiB on each device."""
    import torch
    return [torch.ones(count * MIB, dtype=torch.uint8, device=f"cuda:{i}") for i in (0, 1)]


@feature("figures of each device", devices=2)
def devices_apart():
    import torch
    x, y = two()[0], two(5)[1]
    return {"allocated": [torch.cuda.memory_allocated(i) for i in (0, 1)],
            "peaks": [torch.cuda.max_memory_allocated(i) for i in (0, 1)],
            "kept": [x.numel(), y.numel()]}


@feature("copies between devices", devices=2)
def copies_between_devices():
    import torch
    x = torch.arange(1000, device="cuda:0")
    y = x.to("cuda:1")
    z = torch.empty_like(x).copy_(y, non_blocking=True)
    return {"sums": [y.sum().item(), z.sum().item()],
            "peer": torch.cuda.can_device_access_peer(0, 1)}


@feature("nn.parallel: replicate, scatter, gather, DataParallel", devices=2)
def data_parallel():
    import torch
    model = torch.nn.DataParallel(torch.nn.Linear(16, 16).cuda())
    y = model(torch.ones(8, 16, device="cuda"))
    y.sum().backward()
    return {"shape": tuple(y.shape), "gradient": tuple(model.module.weight.grad.shape)}


@feature("torch.cuda.device as a context, device_of, set_device", devices=2)
def current_device():
    import torch
    x, y = two()
    with torch.cuda.device(1):
        inside = torch.empty(1, device="cuda").device.index
    with torch.cuda.device_of(y):
        of = torch.cuda.current_device()
    torch.cuda.set_device(1)
    return {"devices": [inside, of, torch.ones(1, device="cuda").device.index, len(x)]}


@feature("memory of one device is freed while the other is current", devices=2)
def freed_from_the_other():
    import torch
    x, y = two(4)
    torch.cuda.set_device(1)
    del x
    torch.cuda.empty_cache()
    return {"allocated": [torch.cuda.memory_allocated(i) for i in (0, 1)], "kept": y.numel()}


@feature("record_stream of another device's stream after a copy", devices=2)
def streams_of_devices():
    import torch
    x = torch.full((1000,), 2, device="cuda:0")
    stream = torch.cuda.Stream(device="cuda:1")
    with torch.cuda.stream(stream):
        y = x.to("cuda:1", non_blocking=True)
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    return {"sum": y.sum().item()}


@feature("fraction, peaks and caches of one device only", devices=2)
def limits_of_devices():
    import torch
    torch.cuda.set_per_process_memory_fraction(0.01, 1)
    two()
    try:
        torch.empty(4 << 30, dtype=torch.uint8, device="cuda:1")
        refused = False
    except torch.OutOfMemoryError:
        refused = True
    x = torch.empty(4 << 30, dtype=torch.uint8, device="cuda:0")
    torch.cuda.reset_peak_memory_stats(1)
    return {"refused": refused, "kept": x.numel(),
            "peaks": [torch.cuda.max_memory_allocated(i) for i in (0, 1)]}


@feature("comm: broadcast, reduce_add, scatter, gather", devices=2)
def comm():
    import torch
    from torch.cuda import comm as between
    x = torch.full((100,), 2.0, device="cuda:0")
    copies = between.broadcast(x, [0, 1])
    parts = between.scatter(x, [0, 1])
    whole = between.gather(parts, destination=0)
    return {"devices": [y.device.index for y in copies], "sum": whole.sum().item()}


@feature("graphs on the second device", devices=2)
def graph_on_the_second():
    import torch
    torch.cuda.set_device(1)
    x = torch.ones(100, device="cuda:1")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    return {"sum": y.sum().item(), "allocated": torch.cuda.memory_allocated(0)}


@feature("snapshot and history of both devices", devices=2)
def snapshot_of_devices():
    import torch
    torch.cuda.memory._record_memory_history()
    kept = two(2)
    snapshot = torch.cuda.memory._snapshot()
    return {"devices": sorted({segment["device"] for segment in snapshot["segments"]}),
            "traces": [any(event["action"] == "alloc" for event in trace)
                       for trace in snapshot["device_traces"]], "kept": len(kept)}


@feature("MemPool on the second device", devices=2)
def mem_pool_on_the_second():
    import torch
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool, device="cuda:1"):
        x = two(3)
    return {"allocated": [torch.cuda.memory_allocated(i) for i in (0, 1)], "kept": len(x)}


@feature("a peer reads memory of the pool: an operator on tensors after a copy", devices=2)
def peer_access():
    import torch
    x, y = two(8)
    x.copy_(y)
    y.copy_(x)
    torch.cuda.synchronize()
    return {"sums": [x.sum().item() // MIB, y.sum().item() // MIB]}
