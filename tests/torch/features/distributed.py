"""Several ranks, of which there is one here, and what takes memory for them."""
import os

from features import Absent, feature, need_name

NCCL = {"MASTER_ADDR": "127.0.0.1", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}


def group(backend="nccl", **more):
    """torch.distributed with one rank."""
    import socket

    import torch
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(NCCL, MASTER_PORT=str(port))
    torch.distributed.init_process_group(backend, **more)
    return torch.distributed


@feature("NCCL: all_reduce, all_gather, reduce_scatter, broadcast")
def nccl_collectives():
    import torch
    ranks = group()
    x = torch.full((1000,), 3.0, device="cuda")
    ranks.all_reduce(x)
    out = torch.empty(1000, device="cuda")
    ranks.all_gather_into_tensor(out, x)
    ranks.reduce_scatter_tensor(out, x)
    ranks.broadcast(out, 0)
    torch.cuda.synchronize()
    ranks.destroy_process_group()
    return {"sum": out.sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("NCCL: collectives that do not wait, and coalesced ones")
def nccl_asynchronous():
    import torch
    ranks = group()
    xs = [torch.full((100,), float(i), device="cuda") for i in range(4)]
    work = [ranks.all_reduce(x, async_op=True) for x in xs]
    for one in work:
        one.wait()
    torch.cuda.synchronize()
    ranks.destroy_process_group()
    return {"sums": [x.sum().item() for x in xs]}


@feature("NCCL with device_id: the communicator is made at once")
def nccl_eager():
    import torch
    ranks = group(device_id=torch.device("cuda:0"))
    x = torch.full((100,), 2.0, device="cuda")
    ranks.all_reduce(x)
    total = x.sum().item()
    ranks.destroy_process_group()
    return {"sum": total}


@feature("NCCL: new_group, barrier, monitored objects")
def nccl_groups():
    import torch
    ranks = group()
    other = ranks.new_group([0])
    x = torch.full((100,), 2.0, device="cuda")
    ranks.all_reduce(x, group=other)
    ranks.barrier()
    objects = [None]
    ranks.all_gather_object(objects, {"a": 1})
    total = x.sum().item()
    ranks.destroy_process_group()
    return {"sum": total, "objects": objects}


@feature("NCCL registers PyTorch's memory: TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
         settings={"TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK": "1"})
def nccl_registers():
    import torch
    ranks = group()
    x = torch.full((100,), 2.0, device="cuda")
    ranks.all_reduce(x)
    y = torch.full((100,), 2.0, device="cuda")
    ranks.all_reduce(y)
    total = (x + y).sum().item()
    ranks.destroy_process_group()
    return {"sum": total}


def reduced():
    import torch
    ranks = group()
    x = torch.full((100,), 2.0, device="cuda")
    ranks.all_reduce(x)
    total = x.sum().item()
    ranks.destroy_process_group()
    return {"sum": total}


@feature("NCCL's older implementation where there is a newer", since=(2, 15),
         settings={"TORCH_DIST_USE_NCCL2": "0"}, long=True)
def nccl_older():
    return reduced()


@feature("NCCL's newer implementation, by its variable", since=(2, 15),
         settings={"TORCH_DIST_USE_NCCL2": "1"}, long=True)
def nccl_newer():
    return reduced()


@feature("NCCL: abort of a group, and the process goes on")
def nccl_abort():
    import torch
    ranks = group()
    x = torch.full((100,), 2.0, device="cuda")
    ranks.all_reduce(x)
    torch.cuda.synchronize()
    ranks.distributed_c10d._abort_process_group()
    return {"sum": x.sum().item(), "initialised": ranks.is_initialized()}


@feature("NCCL: a MemPool of its allocator, registered", since=(2, 7))
def nccl_mem_pool():
    import torch
    ranks = group(device_id=torch.device("cuda:0"))
    backend = ranks.group.WORLD._get_backend(torch.device("cuda:0"))
    try:
        pool = torch.cuda.MemPool(backend.mem_allocator)
    except RuntimeError as error:
        if "NCCL mem allocator is not supported" in str(error):
            raise Absent("NCCL has no allocator here") from None
        raise
    with torch.cuda.use_mem_pool(pool):
        x = torch.full((100,), 2.0, device="cuda")
    backend.register_mem_pool(pool)
    ranks.all_reduce(x)
    total = x.sum().item()
    backend.deregister_mem_pool(pool)
    ranks.destroy_process_group()
    return {"sum": total}


@feature("gloo with tensors of the device")
def gloo():
    import torch
    ranks = group("gloo")
    x = torch.full((100,), 2.0, device="cuda")
    ranks.all_reduce(x)
    total = x.sum().item()
    ranks.destroy_process_group()
    return {"sum": total}


def model():
    import torch
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(),
                               torch.nn.Linear(128, 64)).cuda()


def trained(wrapped, steps=3):
    """Figures of some steps."""
    import torch
    optimizer = torch.optim.AdamW(wrapped.parameters())
    for _ in range(steps):
        wrapped(torch.ones(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    return {"allocated": torch.cuda.memory_allocated(),
            "peak": torch.cuda.max_memory_allocated()}


@feature("DistributedDataParallel")
def ddp():
    from torch.nn.parallel import DistributedDataParallel
    ranks = group()
    figures = trained(DistributedDataParallel(model(), device_ids=[0]))
    ranks.destroy_process_group()
    return {"peak": figures["peak"] > 0}


@feature("DistributedDataParallel with static_graph and buckets as views")
def ddp_static_graph():
    from torch.nn.parallel import DistributedDataParallel
    ranks = group()
    wrapped = DistributedDataParallel(model(), device_ids=[0], static_graph=True,
                                      gradient_as_bucket_view=True)
    figures = trained(wrapped)
    ranks.destroy_process_group()
    return {"peak": figures["peak"] > 0}


@feature("FullyShardedDataParallel, the first")
def fsdp1():
    import warnings

    from torch.distributed.fsdp import FullyShardedDataParallel
    warnings.simplefilter("ignore")
    ranks = group()
    figures = trained(FullyShardedDataParallel(model(), device_id=0))
    ranks.destroy_process_group()
    return figures


@feature("fully_shard, the second FSDP")
def fsdp2():
    from torch.distributed.fsdp import fully_shard
    ranks = group()
    wrapped = model()
    for layer in wrapped:
        fully_shard(layer)
    fully_shard(wrapped)
    figures = trained(wrapped)
    ranks.destroy_process_group()
    return figures


@feature("fully_shard with offload to the host")
def fsdp2_offload():
    import torch
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
    ranks = group("cpu:gloo,cuda:nccl")
    wrapped = model()
    fully_shard(wrapped, offload_policy=CPUOffloadPolicy())
    wrapped(torch.ones(8, 64, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    device = next(wrapped.parameters()).device.type
    ranks.destroy_process_group()
    return {"device": device}


@feature("fully_shard with memory from the process group", since=(2, 8))
def fsdp2_allocates_from_group():
    from torch.distributed.fsdp import fully_shard
    ranks = group()
    wrapped = fully_shard(model())
    need_name(wrapped, "set_allocate_memory_from_process_group_for_comm")
    try:
        wrapped.set_allocate_memory_from_process_group_for_comm(True)
        figures = trained(wrapped)
    except RuntimeError as error:
        if "not support" in str(error):
            raise Absent("NCCL has no allocator here") from None
        raise
    ranks.destroy_process_group()
    return figures


@feature("FSDPMemTracker of a training step")
def fsdp_mem_tracker():
    import torch
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed.fsdp import fully_shard
    ranks = group()
    wrapped = fully_shard(model())
    optimizer = torch.optim.AdamW(wrapped.parameters())
    tracker = FSDPMemTracker(wrapped, optimizer)
    tracker.track_inputs((torch.ones(8, 64, device="cuda"),))
    with tracker:
        wrapped(torch.ones(8, 64, device="cuda")).sum().backward()
        optimizer.step()
    found = tracker.get_tracker_snapshot("peak")
    figures = {str(key): value for device in found.values() for key, value in device.items()}
    ranks.destroy_process_group()
    return {"total": figures.get("Total"), "keys": len(figures)}


@feature("DTensor: distribute and redistribute")
def dtensor():
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    ranks = group()
    mesh = init_device_mesh("cuda", (1,))
    x = distribute_tensor(torch.ones(100, device="cuda"), mesh, [Shard(0)])
    total = x.redistribute(mesh, [Replicate()]).to_local().sum().item()
    ranks.destroy_process_group()
    return {"sum": total}


@feature("ZeroRedundancyOptimizer")
def zero_redundancy_optimizer():
    import torch
    from torch.distributed.optim import ZeroRedundancyOptimizer
    ranks = group()
    made = model()
    optimizer = ZeroRedundancyOptimizer(made.parameters(), torch.optim.Adam)
    made(torch.ones(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    torch.cuda.synchronize()
    ranks.destroy_process_group()
    return {"peak": torch.cuda.max_memory_allocated()}


@feature("symmetric memory: empty", since=(2, 7))
def symmetric_memory():
    import torch
    import torch.distributed._symmetric_memory as symmetric
    ranks = group()
    x = symmetric.empty(1000, dtype=torch.float32, device="cuda").fill_(2)
    total = x.sum().item()
    ranks.destroy_process_group()
    return {"sum": total}


@feature("symmetric memory: a MemPool of it", since=(2, 10))
def symmetric_memory_pool():
    import torch
    import torch.distributed._symmetric_memory as symmetric
    ranks = group()
    pool = need_name(symmetric, "get_mem_pool")(torch.device("cuda:0"))
    with torch.cuda.use_mem_pool(pool):
        x = torch.full((1000,), 2.0, device="cuda")
    total = x.sum().item()
    ranks.destroy_process_group()
    return {"sum": total}


@feature("distributed checkpoint: save and load")
def distributed_checkpoint():
    import torch
    import torch.distributed.checkpoint as checkpoint
    ranks = group("cpu:gloo,cuda:nccl")
    state = {"x": torch.arange(100, device="cuda")}
    checkpoint.save(state, checkpoint_id="saved")
    state["x"].zero_()
    checkpoint.load(state, checkpoint_id="saved")
    total = state["x"].sum().item()
    ranks.destroy_process_group()
    return {"sum": total}


@feature("a collective in a captured graph")
def nccl_in_graph():
    import torch
    ranks = group()
    x = torch.ones(100, device="cuda")
    ranks.all_reduce(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ranks.all_reduce(x)
    graph.replay()
    total = x.sum().item()
    del graph
    ranks.destroy_process_group()
    return {"sum": total}


@feature("the flight recorder of NCCL", long=True,
         settings={"TORCH_NCCL_TRACE_BUFFER_SIZE": "100", "TORCH_FR_BUFFER_SIZE": "100"})
def flight_recorder():
    import torch
    ranks = group()
    x = torch.ones(100, device="cuda")
    ranks.all_reduce(x)
    torch.cuda.synchronize()
    trace = torch._C._distributed_c10d._dump_nccl_trace()
    ranks.destroy_process_group()
    return {"bytes": len(trace) > 0}
