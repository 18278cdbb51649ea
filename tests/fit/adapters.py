"""Decoders with low-rank adapters as LitGPT trained them in October 2023, written anew: adapters
of rank 8 on queries and values, everything in bfloat16, the loss in parts of 128 tokens. Also the
plain decoder, which generates with preallocated keys and values."""
import torch
from torch import nn
from torch.nn import functional as F

RANK, SCALE, DROP = 8, 2.0, 0.05
NEOX = dict(bias=True, parallel=True, shared=False, rotary=0.25, gate=False)
LLAMA = dict(words=32000, bias=False, parallel=False, shared=False, rotary=1.0, gate=True)
SHAPES = {
    "phi-1.5": dict(NEOX, words=51200, width=2048, layers=24, heads=32, inner=8192, rotary=0.5,
                    shared=True, last_bias=True, gelu="tanh", context=2048),
    "StableLM-Alpha-3B": dict(NEOX, words=50688, width=4096, layers=16, heads=32, inner=16384,
                              context=4096),
    "Llama-2-7B": dict(LLAMA, width=4096, layers=32, heads=32, inner=11008, context=4096),
    "Llama-2-13B": dict(LLAMA, width=5120, layers=40, heads=40, inner=13824, context=4096),
}


class RootNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        dtype, x = x.dtype, x.float()
        mean = torch.mean(x * x, dim=-1, keepdim=True)
        return (self.weight * (x * torch.rsqrt(mean + 1e-5))).to(dtype)


class Projection(nn.Module):
    """Queries, keys and values in one product; the adapters' product fills the parts of queries and
    values of a tensor of zeros."""

    def __init__(self, width, bias, adapted):
        super().__init__()
        self.base = nn.Linear(width, 3 * width, bias=bias)
        self.adapted, self.width = adapted, width
        if adapted:
            self.down = nn.Parameter(torch.empty(2 * RANK, width))
            self.up = nn.Parameter(torch.empty(2 * width, RANK))

    def forward(self, x):
        out = self.base(x)
        if not self.adapted:
            return out
        low = F.linear(F.dropout(x, DROP, self.training), self.down)
        part = F.conv1d(low.transpose(-2, -1), self.up.unsqueeze(-1), groups=2).transpose(-2, -1)
        part = part.transpose(0, 1)
        places = torch.cat((torch.arange(self.width), torch.arange(2 * self.width, 3 * self.width)))
        zeros = part.new_zeros((*part.shape[:-1], 3 * self.width))
        whole = zeros.view(-1, 3 * self.width).index_copy(
            1, places.to(x.device), part.reshape(-1, 2 * self.width))
        return out + whole.view(zeros.shape).transpose(0, 1) * SCALE


def rotate(x, cosines, sines):
    first, second = x.chunk(2, dim=-1)
    return (x * cosines + torch.cat((-second, first), dim=-1) * sines).type_as(x)


class Layer(nn.Module):
    def __init__(self, shape, adapted):
        super().__init__()
        width, bias = shape["width"], shape["bias"]
        norm = RootNorm if shape["gate"] else nn.LayerNorm
        self.shape, self.first = shape, norm(width)
        self.second = None if shape["shared"] else norm(width)
        self.qkv, self.out = Projection(width, bias, adapted), nn.Linear(width, width, bias=bias)
        self.up = nn.Linear(width, shape["inner"], bias=bias)
        self.gate = nn.Linear(width, shape["inner"], bias=bias) if shape["gate"] else None
        self.down = nn.Linear(shape["inner"], width, bias=bias)
        self.cache = None

    def attend(self, x, turns, mask, place):
        count, length, width = x.shape
        size = width // self.shape["heads"]
        qkv = self.qkv(x).view(count, length, self.shape["heads"], 3, size).permute(0, 2, 3, 1, 4)
        q, k, v = (part.reshape(count, -1, length, size) for part in qkv.split((1, 1, 1), dim=2))
        turned = int(size * self.shape["rotary"])
        q = torch.cat((rotate(q[..., :turned], *turns), q[..., turned:]), dim=-1)
        k = torch.cat((rotate(k[..., :turned], *turns), k[..., turned:]), dim=-1)
        if self.cache:
            k, v = (kept.index_copy_(2, place, new) for kept, new in zip(self.cache, (k, v)))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.out(y.transpose(1, 2).reshape(count, length, width))

    def feed(self, x):
        if self.gate is None:
            return self.down(F.gelu(self.up(x), approximate=self.shape.get("gelu", "none")))
        gated = self.up(x)
        return self.down(F.silu(gated) * self.gate(x))

    def forward(self, x, turns, mask, place):
        normed = self.first(x)
        attended = self.attend(normed, turns, mask, place)
        if self.shape["parallel"]:
            return x + attended + self.feed(normed if self.second is None else self.second(x))
        x = x + attended
        return x + self.feed(self.second(x))


class Decoder(nn.Module):
    def __init__(self, shape, adapted):
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape["words"], shape["width"])
        self.layers = nn.ModuleList(Layer(shape, adapted) for _ in range(shape["layers"]))
        self.norm = (RootNorm if shape["gate"] else nn.LayerNorm)(shape["width"])
        self.head = nn.Linear(shape["width"], shape["words"], bias=shape.get("last_bias", False))

    def turns(self, length, device):
        size = int(self.shape["width"] // self.shape["heads"] * self.shape["rotary"])
        return [torch.zeros(length, size, dtype=torch.bfloat16, device=device) for _ in range(2)]

    def forward(self, tokens, turns, mask=None, place=None):
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x, turns, mask, place)
        return self.norm(x)


def build(row):
    torch.set_default_dtype(torch.bfloat16)
    model = Decoder(SHAPES[row["model"]], row["method"] == "LoRA")
    torch.set_default_dtype(torch.float32)
    if row["method"] == "LoRA":
        for layer in model.layers:
            layer.requires_grad_(False)
        for part in (model.words, model.norm, model.head):
            part.requires_grad_(False)
        for layer in model.layers:
            layer.qkv.down.requires_grad_(True)
            layer.qkv.up.requires_grad_(True)
    return model


def logits_of(model, hidden):
    """In parts of 128 tokens; what leaves the model is in float32, without the last token's."""
    parts = [model.head(part) for part in hidden.split(128, dim=1)]
    parts = [part.float() for part in parts]
    parts[-1] = parts[-1][..., :-1, :]
    return parts


def loss_of(logits, targets):
    losses = [F.cross_entropy(part.reshape(-1, part.shape[-1]), wanted.reshape(-1),
                              ignore_index=-1, reduction="none")
              for part, wanted in zip(logits, targets[:, 1:].split(128, dim=1))]
    return torch.cat(losses).mean()


def train(row, model, device):
    """A batch of the longest text, and two of texts of a quarter of its length."""
    if row["method"] == "generate":
        generate(row, model, device)
        return
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=3e-4, weight_decay=0.01)
    turns = model.turns(row["length"], device)
    for step, length in enumerate((row["length"], row["length"] // 4, row["length"] // 4)):
        tokens = torch.zeros(row["batch"], length, dtype=torch.long).to(device)
        targets = torch.zeros(row["batch"], length, dtype=torch.long).to(device)
        logits = logits_of(model, model(tokens, [turn[:length] for turn in turns]))
        loss = loss_of(logits, targets)
        (loss / 128).backward()
        if step == 1:
            optimizer.step()
            optimizer.zero_grad()


def generate(row, model, device):
    """Fifty tokens after a prompt of a few; the cache and the mask have the length of both."""
    model.eval()
    shape, length = model.shape, row["length"]
    size = shape["width"] // shape["heads"]
    for layer in model.layers:
        layer.cache = [torch.zeros(1, shape["heads"], length, size, dtype=torch.bfloat16,
                                   device=device) for _ in range(2)]
    turns = model.turns(shape["context"], device)
    whole = torch.tril(torch.ones(length, length, device=device, dtype=torch.bool))
    tokens = torch.zeros(1, length - 50, dtype=torch.long, device=device)
    places = torch.arange(length - 50, device=device)
    with torch.inference_mode():
        for _ in range(50):
            mask = whole[None, None].index_select(2, places)
            here = [turn.index_select(0, places) for turn in turns]
            logits = model.head(model(tokens, here, mask, places))
            chances = F.softmax(logits[0, -1], dim=-1)
            del logits, chances
            tokens = torch.zeros(1, 1, dtype=torch.long, device=device)
            places = torch.full((1,), length - 1, device=device)
