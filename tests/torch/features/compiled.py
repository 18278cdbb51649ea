"""torch.compile, and the memory of its graphs."""
from features import feature, megabytes, refusal


def work(x):
    return (x * 2 + 1).relu()


def ran(call, size=1000, times=4):
    """Figures after some calls."""
    import torch
    x = torch.ones(size, device="cuda")
    with torch.no_grad():
        for _ in range(times):
            y = call(x)
    torch.cuda.synchronize()
    return {"shape": tuple(y.shape), "allocated": torch.cuda.memory_allocated()}


@feature("torch.compile", triton=True)
def compile_default():
    import torch
    return ran(torch.compile(work))


@feature("torch.compile with dynamic shapes", triton=True)
def compile_dynamic():
    import torch
    call = torch.compile(work, dynamic=True)
    return {size: ran(call, size)["shape"] for size in (100, 200, 300)}


@feature("torch.compile: backend eager and aot_eager")
def compile_eager():
    import torch
    return {backend: ran(torch.compile(work, backend=backend))["shape"]
            for backend in ("eager", "aot_eager")}


@feature("torch.compile: backend cudagraphs")
def compile_cudagraphs():
    import torch
    return ran(torch.compile(work, backend="cudagraphs"))


@feature("torch.compile: reduce-overhead", triton=True)
def compile_reduce_overhead():
    import torch
    return {"shape": ran(torch.compile(work, mode="reduce-overhead"))["shape"]}


@feature("torch.compile: reduce-overhead, memory that its trees hold", triton=True)
def compile_trees_memory():
    import torch
    call = torch.compile(work, mode="reduce-overhead")
    figures = ran(call, 1 << 20)
    torch._dynamo.reset()
    torch.cuda.synchronize()
    return {"held": figures["allocated"], "after": torch.cuda.memory_allocated()}


@feature("torch.compile: reduce-overhead with several shapes", triton=True)
def compile_trees_shapes():
    import torch
    call = torch.compile(work, mode="reduce-overhead", dynamic=False)
    return {size: ran(call, size)["shape"] for size in (100, 200)}


@feature("torch.compile: reduce-overhead, training", triton=True)
def compile_trees_training():
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()).cuda()
    call = torch.compile(model, mode="reduce-overhead")
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        call(torch.ones(4, 32, device="cuda")).sum().backward()
        model.zero_grad()
    torch.cuda.synchronize()
    return {"gradient": model[0].weight.grad is None}


@feature("torch.compile: max-autotune", triton=True)
def compile_max_autotune():
    import torch
    import torch._inductor.config
    torch._inductor.config.max_autotune_gemm_backends = "ATEN"
    call = torch.compile(lambda x: (x @ x).relu(), mode="max-autotune")
    return {"shape": ran(call, (64, 64))["shape"]}


@feature("torch.compile: max-autotune-no-cudagraphs", triton=True)
def compile_max_autotune_no_graphs():
    import torch
    call = torch.compile(work, mode="max-autotune-no-cudagraphs")
    return ran(call)


@feature("torch.compile: graphs without trees", triton=True)
def compile_graphs_without_trees():
    import torch
    import torch._inductor.config
    torch._inductor.config.triton.cudagraph_trees = False
    return {"shape": ran(torch.compile(work, mode="reduce-overhead"))["shape"]}


@feature("torch.compile: an output of a graph is overwritten by the next run", triton=True)
def compile_trees_overwrite():
    import torch
    call = torch.compile(work, mode="reduce-overhead")
    x = torch.ones(1000, device="cuda")
    with torch.no_grad():
        for _ in range(3):
            y = call(x)
        call(x)
        return {"error": (refusal(lambda: y + 1) or "").partition(".")[0]}


@feature("torch.compile of a training step", triton=True)
def compile_training():
    import torch
    model = torch.nn.Linear(32, 32).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    call = torch.compile(model)
    for _ in range(3):
        call(torch.ones(4, 32, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    return {"peak": torch.cuda.max_memory_allocated() > 0}


@feature("compiled autograd", triton=True)
def compiled_autograd():
    import torch
    import torch._dynamo.compiled_autograd as compiled
    x = torch.ones(100, device="cuda", requires_grad=True)
    with compiled._enable(torch.compile(backend="eager")):
        (x * 2).sum().backward()
    return {"gradient": x.grad.sum().item()}


@feature("flex_attention, not compiled")
def flex_attention():
    import torch
    from torch.nn.attention.flex_attention import flex_attention as attention
    q = torch.ones(1, 2, 128, 16, device="cuda")
    y = attention(q, q, q)
    return {"shape": tuple(y.shape)}


@feature("torch.export of a module on the device")
def exported():
    import torch

    class Module(torch.nn.Module):
        def forward(self, x):
            return x * 2 + 1
    program = torch.export.export(Module().cuda(), (torch.ones(10, device="cuda"),))
    return {"sum": program.module()(torch.ones(10, device="cuda")).sum().item()}


@feature("torch.jit.script and trace on the device")
def scripted():
    import warnings

    import torch
    warnings.simplefilter("ignore")
    x = torch.ones(10, device="cuda")
    try:
        call = torch.jit.trace(work, x)
    except RuntimeError as error:
        return {"error": str(error).partition("\n")[0]}
    return {"sum": call(x).sum().item()}


@feature("a snapshot of memory beside graph trees", triton=True)
def compile_trees_snapshot():
    import torch
    torch.cuda.memory._record_memory_history()
    call = torch.compile(work, mode="reduce-overhead")
    ran(call)
    snapshot = torch.cuda.memory._snapshot()
    pools = {segment["segment_pool_id"] for segment in snapshot["segments"]}
    return {"pools": len(pools - {(0, 0)}) > 0}


@feature("the graph of a user's own Triton kernel", triton=True)
def triton_kernel():
    import torch
    import triton
    from features import triton_kernels
    x = torch.ones(1024, device="cuda")
    y = torch.empty_like(x)
    triton_kernels.double[(triton.cdiv(1024, 256),)](x, y, 1024, BLOCK=256)
    torch.cuda.synchronize()
    return {"shape": tuple(y.shape), "allocated": torch.cuda.memory_allocated()}
