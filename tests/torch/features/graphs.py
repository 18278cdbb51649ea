"""CUDA graphs."""
from features import MIB, Absent, feature, megabytes, need_name, refusal


def captured(call, **more):
    """A graph of the call, and what it returned."""
    import torch
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **more):
        result = call()
    return graph, result


@feature("torch.cuda.graph: capture and replay")
def graph_replay():
    import torch
    x = torch.ones(1000, device="cuda")
    graph, y = captured(lambda: x * 2 + 1)
    x.fill_(5)
    graph.replay()
    return {"sum": y.sum().item()}


@feature("memory of a graph in memory_allocated")
def graph_allocated():
    import torch
    x = megabytes(8)
    graph, y = captured(lambda: (x + 1) * 2)
    graph.replay()
    torch.cuda.synchronize()
    held = torch.cuda.memory_allocated()
    del y
    graph.reset()
    return {"held": held, "after": torch.cuda.memory_allocated()}


@feature("CUDAGraph.capture_begin and capture_end")
def graph_by_hand():
    import torch
    x = torch.ones(100, device="cuda")
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        y = x + 2
        graph.capture_end()
    graph.replay()
    torch.cuda.synchronize()
    return {"sum": y.sum().item()}


@feature("a graph that is kept as a graph: keep_graph, raw_cuda_graph, instantiate", since=(2, 8))
def graph_kept():
    import torch
    x = torch.ones(100, device="cuda")
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        y = x + 2
    raw = graph.raw_cuda_graph() != 0
    graph.instantiate()
    graph.replay()
    return {"raw": raw, "sum": y.sum().item()}


@feature("graphs that share a pool")
def graphs_share_a_pool():
    import torch
    x = torch.ones(1000, device="cuda")
    first, y = captured(lambda: x + 1)
    second, z = captured(lambda: y + 1, pool=first.pool())
    first.replay()
    second.replay()
    return {"sums": [y.sum().item(), z.sum().item()], "same": first.pool() == second.pool()}


@feature("graphs of several sizes in graph_pool_handle, as servers make them")
def graphs_of_several_sizes():
    import torch
    pool = torch.cuda.graph_pool_handle()
    x = torch.ones(64, 64, device="cuda")
    made = {}
    for size in (64, 32, 16, 8):
        made[size] = captured(lambda size=size: (x[:size] * 2).add(1), pool=pool)
    for size, (graph, _) in made.items():
        graph.replay()
    torch.cuda.synchronize()
    return {"shapes": [tuple(y.shape) for _, y in made.values()],
            "last": made[8][1].sum().item()}


@feature("a capture's tensor is freed before the first replay")
def graph_freed_before_replay():
    import torch
    x = torch.ones(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        hidden = x * 2
        y = hidden + 1
    del hidden
    graph.replay()
    torch.cuda.synchronize()
    return {"first": y[0].item()}


@feature("a capture's tensor is freed by the next capture in the same pool")
def graph_freed_by_the_next():
    import torch
    x = torch.ones(1 << 18, device="cuda")
    graphs = []
    for n in (1, 2, 3):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=graphs[0][0].pool() if graphs else None):
            hidden = x * n
            y = hidden + 1
        graphs.append((graph, y))
    for graph, _ in graphs:
        graph.replay()
    torch.cuda.synchronize()
    return {"last": graphs[-1][1][0].item()}


@feature("a capture's tensor is freed after replays, before the graph")
def graph_tensor_freed_first():
    import torch
    x = torch.ones(1 << 18, device="cuda")
    graph, y = captured(lambda: x + 1)
    graph.replay()
    total = y[:4].sum().item()
    del y
    graph.replay()
    torch.cuda.synchronize()
    del graph
    return {"sum": total, "allocated": torch.cuda.memory_allocated()}


@feature("a graph is freed before its output")
def graph_freed_before_output():
    import torch
    x = torch.ones(1000, device="cuda")
    graph, y = captured(lambda: x + 1)
    graph.replay()
    torch.cuda.synchronize()
    del graph
    torch.cuda.empty_cache()
    return {"sum": y.sum().item()}


@feature("reset of a graph, and a capture with the same object")
def graph_reset():
    import torch
    x = torch.ones(1000, device="cuda")
    graph, y = captured(lambda: x + 1)
    graph.replay()
    torch.cuda.synchronize()
    del y
    graph.reset()
    with torch.cuda.graph(graph):
        z = x + 2
    graph.replay()
    return {"sum": z.sum().item()}


@feature("make_graphed_callables of a function, with backward")
def graphed_callables():
    import torch
    x = torch.ones(100, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(lambda a: a * 3, (x,))
    y = graphed(torch.full((100,), 2.0, device="cuda", requires_grad=True))
    leaf = torch.ones(100, device="cuda", requires_grad=True)
    graphed(leaf).sum().backward()
    return {"sum": y.sum().item(), "gradient": leaf.grad.sum().item()}


@feature("make_graphed_callables of modules in a tuple")
def graphed_modules():
    import torch
    modules = tuple(torch.nn.Linear(16, 16).cuda() for _ in range(2))
    x = torch.ones(4, 16, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(modules, ((x,), (x,)))
    graphed[1](graphed[0](x)).sum().backward()
    return {"gradient": tuple(modules[0].weight.grad.shape)}


@feature("a side stream within a capture")
def graph_side_stream():
    import torch
    x = torch.ones(1000, device="cuda")
    side = torch.cuda.Stream()

    def work():
        here = torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            y = x + 1
        here.wait_stream(side)
        return y * 2
    graph, z = captured(work)
    graph.replay()
    return {"sum": z.sum().item()}


@feature("record_stream within a capture")
def graph_record_stream():
    import torch
    x = torch.ones(1000, device="cuda")
    side = torch.cuda.Stream()

    def work():
        here = torch.cuda.current_stream()
        y = x + 1
        y.record_stream(side)
        side.wait_stream(here)
        with torch.cuda.stream(side):
            z = y * 2
        here.wait_stream(side)
        del y
        return z
    graph, z = captured(work)
    graph.replay()
    return {"sum": z.sum().item()}


@feature("another thread allocates while a graph is captured")
def graph_beside_thread():
    import threading

    import torch
    x = torch.ones(1000, device="cuda")
    sums = []
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        y = x + 1
        thread = threading.Thread(target=lambda: sums.append(
            torch.empty(5 * MIB, dtype=torch.uint8, device="cuda").numel()))
        thread.start()
        thread.join()
    graph.replay()
    return {"sums": sums, "sum": y.sum().item()}


@feature("empty_cache within a capture")
def graph_empty_cache():
    import torch
    x = torch.ones(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
        torch.cuda.empty_cache()
        z = y + 1
    graph.replay()
    return {"sum": z.sum().item()}


@feature("figures read within a capture")
def graph_figures():
    import torch
    x = megabytes(4)
    seen = []

    def work():
        y = x + 1
        seen.append(torch.cuda.memory_allocated())
        return y
    graph, y = captured(work)
    graph.replay()
    return {"allocated": seen, "sum": y[:8].sum().item()}


@feature("older tensors are freed within a capture")
def graph_frees_older():
    import torch
    x = torch.ones(1000, device="cuda")
    kept = [megabytes(2)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
        kept.clear()
    graph.replay()
    return {"sum": y.sum().item()}


@feature("a synchronisation within a capture is refused, and the next capture works")
def graph_broken_capture():
    import torch
    x = torch.ones(1000, device="cuda")

    def capture():
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            (x + 1).sum().item()
    error = refusal(capture)
    graph, y = captured(lambda: x + 1)
    graph.replay()
    return {"error": error.partition(":")[0], "sum": y.sum().item()}


@feature("out of memory within a capture, and the next capture works")
def graph_out_of_memory():
    import torch
    x = torch.ones(1000, device="cuda")

    def capture():
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    error = refusal(capture)
    graph, y = captured(lambda: x + 1)
    graph.replay()
    return {"error": error.partition(":")[0], "sum": y.sum().item()}


@feature("random numbers of a captured graph, and a generator that is registered")
def graph_generator():
    import torch
    generator = torch.Generator(device="cuda")
    generator.manual_seed(3)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        y = torch.rand(100, device="cuda", generator=generator)
    graph.replay()
    graph.replay()
    return {"shape": tuple(y.shape)}


@feature("a whole training step in a graph, with a capturable optimizer")
def graph_of_training():
    import torch
    model = torch.nn.Linear(16, 16).cuda()
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    x = torch.ones(4, 16, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph, loss = captured(step)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    return {"shape": tuple(loss.shape), "state": len(optimizer.state)}


@feature("CUDAGraph.debug_dump")
def graph_debug_dump():
    import os

    import torch
    x = torch.ones(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    graph.enable_debug_mode()
    with torch.cuda.graph(graph):
        y = x + 1
    error = refusal(graph.debug_dump, os.path.abspath("graph.dot"))
    if error and "NotSupported" in error:
        raise Absent("the driver does not draw graphs of this version")
    graph.replay()
    return {"sum": y.sum().item(), "file": os.path.exists("graph.dot")}


@feature("_cuda_getCheckpointState and _cuda_setCheckpointPoolState")
def graph_checkpoint():
    import torch
    x = torch.ones(1000, device="cuda")
    graph, y = captured(lambda: x + 1)
    graph.replay()
    state = torch._C._cuda_getCheckpointState(0, graph.pool())
    total = y.sum().item()
    storage = y.untyped_storage()
    torch._C._cuda_setCheckpointPoolState(0, state, [storage._cdata], [])
    return {"state": type(state).__name__, "sum": total}


@feature("_cuda_checkPoolLiveAllocations")
def graph_live_allocations():
    import torch
    x = torch.ones(1000, device="cuda")
    graph, y = captured(lambda: x + 1)
    check = torch._C._cuda_checkPoolLiveAllocations
    return {"right": check(0, graph.pool(), {y.untyped_storage().data_ptr()}),
            "wrong": check(0, graph.pool(), {x.untyped_storage().data_ptr()})}


@feature("torch.cuda.is_current_stream_capturing")
def graph_capturing():
    import torch
    x = torch.ones(1000, device="cuda")
    seen = []

    def work():
        seen.append(torch.cuda.is_current_stream_capturing())
        return x + 1
    graph, _ = captured(work)
    graph.replay()
    return {"inside": seen, "outside": torch.cuda.is_current_stream_capturing()}


@feature("two captures, one after the other, in two threads")
def graphs_of_threads():
    import threading

    import torch
    x = torch.ones(1000, device="cuda")
    sums = []

    def work(count):
        stream = torch.cuda.Stream()
        graph, y = captured(lambda: x + count, stream=stream)
        graph.replay()
        torch.cuda.synchronize()
        sums.append(y.sum().item())
    for count in (1, 2):
        thread = threading.Thread(target=work, args=(count,))
        thread.start()
        thread.join()
    return {"sums": sums}


@feature("a graph replayed on several streams")
def graph_on_streams():
    import torch
    x = torch.ones(1000, device="cuda")
    graph, y = captured(lambda: x.add_(1))
    for _ in range(3):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            graph.replay()
        torch.cuda.current_stream().wait_stream(stream)
    return {"sum": y.sum().item()}


@feature("peak and count of allocations with graphs")
def graph_peak():
    import torch
    x = megabytes(4)
    torch.cuda.reset_peak_memory_stats()
    graph, y = captured(lambda: ((x + 1) + 1) + 1)
    graph.replay()
    torch.cuda.synchronize()
    return {"peak": torch.cuda.max_memory_allocated(),
            "count": torch.cuda.memory_stats()["allocation.all.current"], "kept": y.numel()}


@feature("a capture inside a capture is refused")
def graph_nested():
    import torch
    x = torch.ones(1000, device="cuda")

    def capture():
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                x + 1
    error = refusal(capture)
    return {"error": error.partition(":")[0]}


@feature("a copy from pinned memory within a capture, whose source is freed")
def graph_pinned_copy():
    import torch
    host = torch.ones(1000).pin_memory()
    x = torch.zeros(1000, device="cuda")
    graph, _ = captured(lambda: x.copy_(host, non_blocking=True))
    graph.replay()
    torch.cuda.synchronize()
    total = x.sum().item()
    host.fill_(2)
    graph.replay()
    return {"sums": [total, x.sum().item()]}


@feature("the pool of a graph in a snapshot")
def graph_snapshot():
    import torch
    x = megabytes(4)
    graph, y = captured(lambda: x + 1)
    graph.replay()
    segments = torch.cuda.memory._snapshot()["segments"]
    ids = {segment["segment_pool_id"] for segment in segments if segment["allocated_size"]}
    return {"in the pool": graph.pool() in ids, "kept": y.numel()}


@feature("_cuda_getCheckpointState of an empty pool")
def graph_checkpoint_of_nothing():
    import torch
    torch.zeros(1, device="cuda")
    need_name(torch._C, "_cuda_getCheckpointState")
    pool = torch.cuda.graph_pool_handle()
    error = refusal(torch._C._cuda_getCheckpointState, 0, pool)
    return {"error": (error or "").partition(" ")[0]}
