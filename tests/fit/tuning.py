"""Fine-tuning as FakeGPU's documentation describes its runs: one step of AdamW over tensors one by
one, on all parameters or on low-rank adapters, with and without checkpointing. The adapters are
written anew: float32 beside the frozen weights, on every linear layer but the last."""
import torch
from torch import nn


class Adapted(nn.Module):
    """A frozen linear layer and a trained product of two narrow ones."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False, dtype=torch.float32)
        self.up = nn.Linear(rank, base.out_features, bias=False, dtype=torch.float32)

    def forward(self, x):
        out = self.base(x)
        out = out + self.up(self.down(x.to(torch.float32))) * 2.0
        return out.to(self.base.weight.dtype)


def adapt(model, rank):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    layers = [(name, layer) for name, layer in model.named_modules()
              if isinstance(layer, nn.Linear) and name != "lm_head"]
    for name, layer in layers:
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, Adapted(layer, rank))


def prepare(row, model):
    """Before the model has memory."""
    model.config.use_cache = False
    if row["method"] == "LoRA":
        adapt(model, 8)
    if row.get("checkpointing"):
        model.gradient_checkpointing_enable({"use_reentrant": False})
        if row["method"] == "LoRA":
            model.enable_input_require_grads()


def train(row, model, device):
    length = row["length"]
    steps = [{"input_ids": torch.zeros(row["batch"], length, dtype=torch.long, device=device),
              "labels": torch.zeros(row["batch"], length, dtype=torch.long, device=device),
              "position_ids": torch.zeros(3, row["batch"], length, dtype=torch.long, device=device)}
             for _ in range(row.get("accumulate", 1))]
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, foreach=False)
    for step in steps:
        outputs = model(**step, use_cache=False)
        loss = outputs.loss / len(steps)
        loss.backward()
        if step is not steps[-1]:
            del outputs, loss
    optimizer.step()
