"""Kinds of tensors: sparse, nested, complex, quantised and small types, and subclasses."""
from features import feature, megabytes, need_name


def memory():
    import torch
    torch.cuda.synchronize()
    return {"allocated": torch.cuda.memory_allocated()}


@feature("sparse tensors: COO, CSR")
def sparse():
    import torch
    places = torch.tensor([[0, 1, 2], [2, 0, 1]], device="cuda")
    x = torch.sparse_coo_tensor(places, torch.ones(3, device="cuda"), (3, 3))
    y = x.coalesce()
    return {"count": y._nnz(), "sum": y.values().sum().item(), **memory()}


@feature("nested tensors, jagged")
def jagged():
    import torch
    x = torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(5, 4)], layout=torch.jagged,
                                   device="cuda")
    y = x * 2
    return {"sum": y.values().sum().item(), "offsets": y.offsets().tolist(), **memory()}


@feature("nested tensors, strided")
def nested():
    import torch
    x = torch.nested.nested_tensor([torch.ones(3), torch.ones(5)], device="cuda")
    return {"shape": x.to_padded_tensor(0.0).shape[1], **memory()}


@feature("complex numbers")
def complex_numbers():
    import torch
    x = torch.full((100,), 1 + 2j, device="cuda")
    return {"sum": complex(torch.view_as_real(x)[:, 1].sum().item()), **memory()}


@feature("float8 and bfloat16: casts and their sizes")
def small_floats():
    import torch
    x = torch.ones(1000, device="cuda")
    made = [x.to(kind) for kind in (torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16,
                                    torch.float16, torch.int8)]
    return {"bytes": [y.untyped_storage().nbytes() for y in made], **memory()}


@feature("quantised tensors")
def quantised():
    import torch
    x = torch.quantize_per_tensor(torch.ones(100), 0.1, 0, torch.qint8).cuda()
    return {"bytes": x.untyped_storage().nbytes(), **memory()}


@feature("every dtype: fill and read")
def dtypes():
    import torch
    names = ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
             "float64", "bool", "complex64", "uint16", "uint32")
    return {name: torch.ones(10, dtype=getattr(torch, name), device="cuda").cpu().numel()
            for name in names}


@feature("FFT: plans and their workspaces")
def fft():
    import torch
    y = torch.fft.fft(torch.ones(64, 64, device="cuda"))
    torch.backends.cuda.cufft_plan_cache.clear()
    return {"shape": tuple(y.shape), "size": torch.backends.cuda.cufft_plan_cache.size}


@feature("linear algebra: cholesky, svd, solve")
def linear_algebra():
    import torch
    x = torch.eye(16, device="cuda")
    return {"shapes": [tuple(torch.linalg.cholesky_ex(x)[0].shape),
                       tuple(torch.linalg.solve_ex(x, x)[0].shape)]}


@feature("sort, unique, nonzero, masks: sizes that depend on content")
def sizes_from_content():
    import torch
    x = torch.tensor([3, 1, 2, 3, 1], device="cuda")
    return {"unique": torch.unique(x).numel(), "nonzero": torch.nonzero(x > 1).numel(),
            "mask": x[x > 2].numel(), "sort": x.sort().values.shape[0]}


@feature("scatter, gather, index_put, embedding bags")
def scatter():
    import torch
    x = torch.zeros(10, device="cuda")
    places = torch.arange(5, device="cuda")
    x[places] = 1.0
    return {"sum": x.gather(0, places).numel(), "put": tuple(x.index_add(
        0, places, torch.ones(5, device="cuda")).shape), **memory()}


@feature("random numbers: generators, states, dropout")
def random_numbers():
    import torch
    torch.cuda.manual_seed(1)
    state = torch.cuda.get_rng_state()
    x = torch.rand(100, device="cuda")
    torch.cuda.set_rng_state(state)
    y = torch.nn.functional.dropout(x, 0.5)
    return {"state": state.numel(), "shape": tuple(y.shape), **memory()}


@feature("tensor subclasses with __torch_dispatch__")
def subclass():
    import torch
    from torch.testing._internal.two_tensor import TwoTensor
    x = TwoTensor(torch.ones(10, device="cuda"), torch.full((10,), 2.0, device="cuda"))
    y = x + 1
    return {"sums": [y.a.sum().item(), y.b.sum().item()], **memory()}


@feature("masked tensors and parametrised modules on the device")
def masked():
    import warnings

    import torch
    from torch.masked import masked_tensor
    warnings.simplefilter("ignore")
    x = masked_tensor(torch.ones(4, device="cuda"),
                      torch.tensor([True, False, True, True], device="cuda"))
    return {"sum": x.sum().get_data().item()}


@feature("foreach functions: one kernel for many tensors")
def foreach():
    import torch
    xs = [torch.full((100,), float(i), device="cuda") for i in range(10)]
    torch._foreach_add_(xs, 1.0)
    return {"sum": sum(x.sum().item() for x in xs), **memory()}


@feature("a copy-on-write tensor: _lazy_clone")
def lazy_clone():
    x = megabytes(4)
    y = x._lazy_clone()
    y += 1
    return {"sums": [x[:9].sum().item(), y[:9].sum().item()], **memory()}


@feature("jiterator: a kernel from text", triton=False)
def jiterator():
    import torch
    need_name(torch.cuda, "jiterator")
    call = torch.cuda.jiterator._create_jit_fn(
        "template <typename T> T plus(T x, T y) { return x + y; }")
    x = torch.ones(100, device="cuda")
    return {"shape": tuple(call(x, x).shape), **memory()}


@feature("bmm, baddbmm, addmm: products and their workspaces")
def products():
    import torch
    x = torch.ones(4, 32, 32, device="cuda", dtype=torch.float16)
    y = torch.bmm(x, x)
    z = torch.baddbmm(y, x, x)
    return {"shape": tuple(z.shape), **memory()}


@feature("_scaled_mm of float8")
def scaled_product():
    import torch
    x = torch.ones(64, 64, device="cuda").to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    y = torch._scaled_mm(x, x.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    return {"shape": tuple(y.shape), **memory()}
