"""Single layers as Liger's benchmark runs them, forward and backward: PyTorch's own operators, and
Liger's kernels in Triton. Written anew but for the kernels, which are Liger's package."""
# pylint: disable=import-error,import-outside-toplevel
import torch
from torch import nn
from torch.nn import functional as F


def rotated(x):
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return torch.cat((-second, first), dim=-1)


def cross_entropy(row, device):
    logits = torch.zeros(8 * 2048, row["size"], device=device, requires_grad=True)
    targets = torch.zeros(8 * 2048, dtype=torch.long, device=device)

    def run():
        if row["method"] == "liger":
            from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
            LigerCrossEntropyFunction.apply(logits, targets, -100).backward()
        else:
            F.cross_entropy(logits, targets).backward()
    return run


def head_cross_entropy(row, device):
    heads = [nn.Linear(4096, 128256, bias=False, dtype=torch.bfloat16, device=device)
             for _ in range(2)]
    x = torch.zeros(row["size"], 4096, dtype=torch.bfloat16, device=device, requires_grad=True)
    targets = torch.zeros(row["size"], dtype=torch.long, device=device)
    return lambda: F.cross_entropy(heads[0](x), targets).backward()


def root_norm(row, device):
    weights = [nn.Parameter(torch.ones(row["size"], device=device)) for _ in range(2)]
    x = torch.zeros(2048, row["size"], dtype=torch.bfloat16, device=device)
    gradient = torch.zeros_like(x)
    x.requires_grad_(True)

    def run():
        if row["method"] == "liger":
            from liger_kernel.ops.rms_norm import LigerRMSNormFunction
            y = LigerRMSNormFunction.apply(x, weights[0], 1e-6)
        else:
            wide = x.to(torch.float32)
            variance = wide.pow(2).mean(-1, keepdim=True)
            y = weights[1] * (wide * torch.rsqrt(variance + 1e-6)).to(x.dtype)
            del wide, variance
        y.backward(gradient, retain_graph=True)
    return run


def layer_norm(row, device):
    norms = [nn.LayerNorm(row["size"], eps=1e-6, device=device) for _ in range(2)]
    x = torch.zeros(4096, row["size"], device=device)
    gradient = torch.zeros_like(x)
    x.requires_grad_(True)
    return lambda: norms[0](x).backward(gradient, retain_graph=True)


def gated(row, device):
    x = torch.zeros(row["batch"], row["size"], 4096, dtype=torch.bfloat16, device=device,
                    requires_grad=True)
    gate, up = (nn.Linear(4096, 11008, bias=False, dtype=torch.bfloat16, device=device)
                for _ in range(2))
    down = nn.Linear(11008, 4096, bias=False, dtype=torch.bfloat16, device=device)

    def run():
        if row["method"] == "liger" and row["model"] == "swiglu":
            from liger_kernel.ops.swiglu import LigerSiLUMulFunction
            y = down(LigerSiLUMulFunction.apply(gate(x), up(x)))
        elif row["method"] == "liger":
            from liger_kernel.ops.geglu import LigerGELUMulFunction
            y = down(LigerGELUMulFunction.apply(gate(x), up(x)))
        elif row["model"] == "swiglu":
            y = down(F.silu(gate(x)) * up(x))
        else:
            y = down(F.gelu(gate(x), approximate="tanh") * up(x))
        y.backward(torch.zeros_like(y), retain_graph=True)
    return run


def turn(row, device):
    size, length = row.get("width", 8192) // 32, row["size"]
    settings = {"dtype": torch.bfloat16, "device": device}
    q, k = (torch.zeros(1, length, heads, size, requires_grad=True, **settings).transpose(1, 2)
            for heads in (32, 8))
    gradients = [torch.zeros_like(part) for part in (q, k)]
    rates = torch.zeros(1, size // 2, 1, device=device)
    places = torch.arange(length, device=device, dtype=torch.long).unsqueeze(0)
    angles = (rates @ places[:, None, :].float()).transpose(1, 2)
    angles = torch.cat((angles, angles), dim=-1)
    cosines, sines = angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)
    del angles

    def run():
        if row["method"] == "liger":
            from liger_kernel.ops.rope import LigerRopeFunction
            results = LigerRopeFunction.apply(q, k, cosines, sines, places)
        else:
            wide = [part.unsqueeze(1) for part in (cosines, sines)]
            results = [part * wide[0] + rotated(part) * wide[1] for part in (q, k)]
        torch.autograd.grad(results, (q, k), gradients, allow_unused=True, retain_graph=True)
    return run


KERNELS = {"cross entropy": cross_entropy, "linear and cross entropy": head_cross_entropy,
           "rms norm": root_norm, "layer norm": layer_norm, "swiglu": gated, "geglu": gated,
           "rope": turn}


def build(_):
    return nn.Module()


def train(row, _, device):
    """The peak is that of the passes, without their preparation."""
    run = KERNELS[row["model"]](row, device)
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        run()
