"""What training does with memory: optimizers, offload, checkpoints, precision."""
from features import feature, need


def network(width=64):
    import torch
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(),
                               torch.nn.Linear(width, width)).cuda()


def memory():
    import torch
    torch.cuda.synchronize()
    return {"allocated": torch.cuda.memory_allocated(), "peak": torch.cuda.max_memory_allocated()}


def trained(optimizer_of, steps=3, **more):
    """Figures of some steps with an optimizer."""
    import torch
    model = network()
    optimizer = optimizer_of(model.parameters(), **more)
    for _ in range(steps):
        model(torch.ones(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    state = sum(value.numel() for values in optimizer.state.values() for value in values.values()
                if torch.is_tensor(value))
    return {**memory(), "state": state}


@feature("SGD with momentum")
def sgd():
    import torch
    return trained(torch.optim.SGD, lr=0.1, momentum=0.9)


@feature("AdamW: one kernel for each tensor")
def adamw_for_loop():
    import torch
    return trained(torch.optim.AdamW, foreach=False)


@feature("AdamW: foreach")
def adamw_foreach():
    import torch
    return trained(torch.optim.AdamW, foreach=True)


@feature("AdamW: fused")
def adamw_fused():
    import torch
    return trained(torch.optim.AdamW, fused=True)


@feature("Adam: capturable")
def adam_capturable():
    import torch
    return trained(torch.optim.Adam, capturable=True)


@feature("Adafactor, Adagrad, RMSprop, NAdam: memory of their states")
def other_optimizers():
    import torch
    return {kind.__name__: trained(kind)["state"] for kind in
            (torch.optim.Adafactor, torch.optim.Adagrad, torch.optim.RMSprop, torch.optim.NAdam)}


@feature("an optimizer's step inside of backward: register_post_accumulate_grad_hook")
def step_in_backward():
    import torch
    model = network()
    for parameter in model.parameters():
        optimizer = torch.optim.SGD([parameter], lr=0.1)

        def hook(parameter, optimizer=optimizer):
            optimizer.step()
            optimizer.zero_grad()
        parameter.register_post_accumulate_grad_hook(hook)
    model(torch.ones(8, 64, device="cuda")).sum().backward()
    return memory()


@feature("save_on_cpu")
def save_on_cpu():
    import torch
    model = network()
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = model(torch.ones(8, 64, device="cuda")).sum()
    loss.backward()
    return memory()


@feature("saved_tensors_hooks that pack to the host on a side stream")
def saved_tensors_hooks():
    import torch
    side = torch.cuda.Stream()

    def pack(x):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            host = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
            host.copy_(x, non_blocking=True)
        x.record_stream(side)
        return host

    def unpack(host):
        side.synchronize()
        return host.to("cuda", non_blocking=True)
    x = torch.full((1000,), 3.0, device="cuda", requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).sum()
    y.backward()
    return {"gradient": x.grad.sum().item()}


@feature("activation checkpointing")
def checkpointing():
    import torch
    from torch.utils.checkpoint import checkpoint
    model = network(256)
    x = torch.ones(64, 256, device="cuda", requires_grad=True)
    for layer in model:
        x = checkpoint(layer, x, use_reentrant=False)
    x.sum().backward()
    return memory()


@feature("activation checkpointing, the older form")
def checkpointing_reentrant():
    import torch
    from torch.utils.checkpoint import checkpoint_sequential
    model = network(256)
    x = torch.ones(64, 256, device="cuda", requires_grad=True)
    checkpoint_sequential(model, 2, x, use_reentrant=True).sum().backward()
    return memory()


@feature("a module moved to the host and back")
def module_offload():
    import torch
    model = network(512)
    before = torch.cuda.memory_allocated()
    model.cpu()
    away = torch.cuda.memory_allocated()
    model.cuda()
    return {"before": before, "away": away, **memory()}


@feature("a module made on the meta device, then on this one: to_empty")
def module_to_empty():
    import torch
    with torch.device("meta"):
        model = torch.nn.Linear(512, 512)
    model.to_empty(device="cuda")
    return memory()


@feature("torch.device as a context")
def device_context():
    import torch
    with torch.device("cuda"):
        model = torch.nn.Linear(64, 64)
    return {"device": model.weight.device.type, **memory()}


@feature("mixed precision: autocast and GradScaler")
def grad_scaler():
    import torch
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(2):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.ones(8, 64, device="cuda")).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return {"scale": scaler.get_scale() > 0}


@feature("autocast keeps a cache of casts and drops it")
def autocast_cache():
    import torch
    model = network(256)
    before = torch.cuda.memory_allocated()
    with torch.autocast("cuda", dtype=torch.bfloat16), torch.no_grad():
        model(torch.ones(8, 256, device="cuda"))
        inside = torch.cuda.memory_allocated() > before
    return {"inside": inside, **memory()}


@feature("gradients accumulate, are clipped and set to nothing")
def clipped_gradients():
    import torch
    model = network()
    for _ in range(3):
        model(torch.ones(8, 64, device="cuda")).sum().backward()
    held = torch.cuda.memory_allocated()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    model.zero_grad(set_to_none=True)
    return {"held": held, **memory()}


@feature("a convolution, with and without cudnn.benchmark")
def convolutions():
    import torch
    layer = torch.nn.Conv2d(3, 8, 3).cuda()
    x = torch.ones(2, 3, 32, 32, device="cuda")
    shapes = []
    for benchmark in (False, True):
        torch.backends.cudnn.benchmark = benchmark
        y = layer(x)
        y.sum().backward()
        shapes.append(tuple(y.shape))
    torch.cuda.synchronize()
    return {"shapes": shapes, "allocated": torch.cuda.memory_allocated()}


@feature("an LSTM with cuDNN")
def lstm():
    import torch
    layer = torch.nn.LSTM(16, 32, 2).cuda()
    y, _ = layer(torch.ones(5, 4, 16, device="cuda"))
    y.sum().backward()
    return {"shape": tuple(y.shape), **memory()}


@feature("scaled_dot_product_attention by each kernel that there is")
def attention():
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    q = torch.ones(2, 4, 128, 64, device="cuda", dtype=torch.float16, requires_grad=True)
    shapes = {}
    for kind in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
        with sdpa_kernel(kind):
            y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
            y.sum().backward()
        shapes[kind.name] = tuple(y.shape)
    return {**shapes, **memory()}


@feature("an embedding with sparse gradients")
def sparse_gradients():
    import torch
    layer = torch.nn.Embedding(1000, 16, sparse=True).cuda()
    layer(torch.arange(10, device="cuda")).sum().backward()
    return {"sparse": layer.weight.grad.is_sparse, "shape": tuple(layer.weight.grad.shape)}


@feature("grad of grad, and a graph that is kept")
def second_derivative():
    import torch
    x = torch.full((100,), 2.0, device="cuda", requires_grad=True)
    first, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    second, = torch.autograd.grad(first.sum(), x)
    return {"first": first.sum().item(), "second": second.sum().item(), **memory()}


@feature("functorch: vmap, grad, jvp")
def functorch():
    import torch
    x = torch.ones(10, device="cuda")
    gradient = torch.func.grad(lambda a: (a * a).sum())(x)
    return {"gradient": gradient.sum().item(),
            "vmap": torch.func.vmap(lambda a: a + 1)(x).sum().item(),
            "jvp": torch.func.jvp(lambda a: a * 2, (x,), (x,))[1].sum().item()}


@feature("a backward pass that fails, and the next one")
def failing_backward():
    import gc

    import torch

    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(torch.ones(1 << 20, device="cuda"))
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise RuntimeError("bad")
    x = torch.ones(10, device="cuda", requires_grad=True)
    try:
        Bad.apply(x).sum().backward()
    except RuntimeError:
        pass
    gc.collect()
    (x * 2).sum().backward()
    return {"gradient": x.grad.sum().item(), "allocated": memory()["allocated"]}


@feature("a model of transformers makes text with a cache of keys")
def generation():
    import torch
    transformers = need("transformers")
    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=50, n_positions=32,
                                     bos_token_id=0, eos_token_id=None, pad_token_id=0)
    model = transformers.GPT2LMHeadModel(config).cuda().eval()
    tokens = model.generate(torch.ones(1, 4, dtype=torch.long, device="cuda"), max_new_tokens=4,
                            min_new_tokens=4, do_sample=False)
    return {"shape": tuple(tokens.shape)}


@feature("accelerate.cpu_offload of a module")
def accelerate_offload():
    import torch
    accelerate = need("accelerate")
    model = network()
    model.cpu()
    accelerate.cpu_offload(model, execution_device="cuda:0")
    with torch.no_grad():
        y = model(torch.ones(8, 64, device="cuda"))
    shape = tuple(y.shape)
    del y
    return {"shape": shape, **memory()}


@feature("weights that are averaged: AveragedModel")
def averaged_model():
    import torch
    model = network()
    average = torch.optim.swa_utils.AveragedModel(model, device="cuda")
    average.update_parameters(model)
    return memory()


@feature("parametrisations, spectral and weight norms")
def norms():
    import torch
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(16, 16)).cuda()
    layer(torch.ones(2, 16, device="cuda")).sum().backward()
    return memory()
