"""Models of timm. GPUMemNet's are trained in float32 as timm's script does by default: SGD with
momentum, pictures of the model's own size, a thousand classes. torchao's is finetuned in bfloat16
with checkpoints and AdamW, whose state is on the GPU or on the host; then the gradients stay on the
GPU until the step, or leave it as soon as they are there."""
import functools
from unittest import mock

import torch


def build(row):
    import timm  # pylint: disable=import-error,import-outside-toplevel
    size = {"img_size": row["image"]} if "image" in row else {}
    # Rates that rise from layer to layer are read while the model is built.
    rates = functools.partial(torch.linspace, device="cpu")
    with mock.patch.object(torch, "linspace", rates):
        model = timm.create_model(row["model"], num_classes=row.get("classes", 1000), **size)
    if row.get("checkpointing"):
        model.set_grad_checkpointing()
    return model.to(getattr(torch, row.get("dtype", "float32")))


class OnHost:
    """AdamW whose state is on the host, with a copy of the parameters there."""

    def __init__(self, model, at_once):
        self.pairs = [(param, torch.empty_like(param, device="cpu")) for param in
                      model.parameters()]
        if at_once:
            for param, copy in self.pairs:
                param.register_post_accumulate_grad_hook(functools.partial(self.fetch, copy))

    @staticmethod
    def fetch(copy, param):
        copy.copy_(param.grad)
        param.grad = None

    def step(self):
        for param, copy in self.pairs:
            if param.grad is not None:
                self.fetch(copy, param)
            param.data.copy_(copy)

    def zero_grad(self):
        pass


def make_optimizer(row, model):
    if row.get("method", "plain") == "plain":
        settings = {"lr": 0.05, "momentum": 0.9} if row["optimizer"] == "SGD" else {"fused": True}
        return getattr(torch.optim, row["optimizer"])(model.parameters(), **settings)
    return OnHost(model, row["method"] == "gradients on the host")


def train(row, model, device):
    optimizer = make_optimizer(row, model)
    criterion = torch.nn.CrossEntropyLoss()
    dtype = getattr(torch, row.get("dtype", "float32"))
    channels, side, _ = model.default_cfg["input_size"]
    side = row.get("image", side)
    for _ in range(4):
        pictures = torch.zeros(row["batch"], channels, side, side, dtype=dtype).to(device)
        labels = torch.zeros(row["batch"], dtype=torch.long).to(device)
        outputs = model(pictures)
        loss = criterion(outputs, labels)
        if row["optimizer"] == "SGD":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if row["optimizer"] != "SGD":
            optimizer.zero_grad()
        del outputs, loss
