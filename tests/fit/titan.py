"""Llama 3.1 8B as one of the ranks of torchtitan's runs of December 2024: parameters, gradients
and the state of AdamW are sharded layer by layer, products are in bfloat16, and of what the layers
compute attention and every second matrix product are kept for the backward pass. The process group
communicates with nobody. Written anew."""
import functools

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import (CheckpointPolicy, checkpoint,
                                    create_selective_checkpoint_contexts)

WIDTH, HEADS, GROUPS, INNER, WORDS, LAYERS = 4096, 32, 8, 14336, 128256, 32
SIZE = WIDTH // HEADS
ATEN = torch.ops.aten
KEPT = {ATEN.mm.default, ATEN._scaled_dot_product_flash_attention.default,
        torch.ops._c10d_functional.reduce_scatter_tensor.default}


def rotate(x, turns):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[:, None]).flatten(3).type_as(x)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, GROUPS * SIZE, bias=False)
        self.v = nn.Linear(WIDTH, GROUPS * SIZE, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, INNER, bias=False)
        self.first, self.second = nn.RMSNorm(WIDTH, 1e-5), nn.RMSNorm(WIDTH, 1e-5)

    def attend(self, x, turns):
        count, length, _ = x.shape
        q, k, v = (linear(x).view(count, length, -1, SIZE) for linear in (self.q, self.k, self.v))
        q, k = rotate(q, turns), rotate(k, turns)
        k, v = (part[:, :, :, None, :].expand(-1, -1, -1, HEADS // GROUPS, -1)
                .reshape(count, length, HEADS, SIZE) for part in (k, v))
        y = F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (q, k, v)),
                                           is_causal=True)
        return self.o(y.transpose(1, 2).contiguous().view(count, length, -1))

    def forward(self, x, turns):
        x = x + self.attend(self.first(x), turns)
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def choose(counts, context, function, *_, **__):
    """Keeps what is costly; of the matrix products every second."""
    phase = "again" if context.is_recompute else "first"
    counts[phase] = counts.get(phase, 0) + (function == ATEN.mm.default)
    keep = function in KEPT and not (function == ATEN.mm.default and counts[phase] % 2 == 0)
    return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH, 1e-5)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens, turns):
        x = self.words(tokens)
        for layer in self.layers:
            contexts = functools.partial(create_selective_checkpoint_contexts,
                                         functools.partial(choose, {}))
            x = checkpoint(layer, x, turns, use_reentrant=False, context_fn=contexts)
        return self.head(self.norm(x))


def build(_):
    return nn.Module()  # the model is made in shards


def sharded(ranks, device):
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    mesh = dist.init_device_mesh("cuda", (ranks,))
    with torch.device("meta"):
        model = Decoder()
    settings = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                                reduce_dtype=torch.float32)}
    for layer in model.layers:
        fully_shard(layer, reshard_after_forward=layer is not model.layers[-1], **settings)
    fully_shard(model, reshard_after_forward=True, **settings)
    return model.to_empty(device=device)


def train(row, _, device):
    model = sharded(row["ranks"], device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    turns = torch.zeros(row["length"], SIZE // 2, dtype=torch.complex64, device=device)
    for _ in range(3):
        tokens = torch.zeros(row["batch"], row["length"], dtype=torch.long).to(device)
        labels = torch.zeros(row["batch"], row["length"], dtype=torch.long).to(device)
        optimizer.zero_grad()
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            logits = model(tokens, turns)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1))
            del logits
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
