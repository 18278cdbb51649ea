#!/usr/bin/env python3
"""Trains a model of modules that cannot simply run again in the backward pass, and copies of it.
Prints each loss and the sum of all gradients, bit for bit."""
import contextlib
import copy
import io
import pickle
import random

import torch
import torch.utils.checkpoint

WIDTH = 16


class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return torch.tanh(self.linear(x))


class Counter(Odd):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * self.calls


class Buffer(Odd):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        self.scale += 0.5
        return super().forward(x) * self.scale.clone()


class Late(Odd):
    """Changes a buffer, but not in its first calls."""
    step = 0

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        if Late.step == 2:
            self.scale += 0.5
        return super().forward(x)


class Changer(Odd):
    def forward(self, x):
        return super().forward(x.mul_(2))


class Lister(Odd):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(x.detach().mean())
        return super().forward(x) * len(self.seen)


class Keeper(Odd):
    def forward(self, x):
        self.last = super().forward(x)
        return self.last


class Normal(Odd):
    """Counts in a batch norm, which is known to be harmless."""
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(WIDTH)

    def forward(self, x):
        return self.norm(super().forward(x))


class Chance(Odd):
    def forward(self, x):
        import numpy
        moved = self.linear(x) + (random.random() + numpy.random.rand())
        return torch.nn.functional.dropout(torch.tanh(moved), 0.1)


class Hooked(Odd):
    """Called with hooks on saved tensors."""


class Checkpointed(Odd):
    """Called in a checkpoint of the older kind."""


class Patched(Odd):
    """Has a forward of its own."""


class Positions(Odd):
    """Takes its arguments by name, in containers, with names that the checkpoint has too."""
    def forward(self, *, debug, inputs, context_fn=None):
        return super().forward(inputs["x"][0]) * debug


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.odd = torch.nn.ModuleDict({kind.__name__.lower(): kind() for kind in (
            Counter, Buffer, Late, Changer, Lister, Keeper, Normal, Chance, Hooked, Checkpointed,
            Patched, Positions)})
        self.odd["patched"].forward = self.patched
        self.odd["scripted"] = torch.jit.script(Odd())
        compiled = Odd()
        compiled.compile(backend="eager")
        self.odd["compiled"] = compiled

    def patched(self, x):
        return torch.sigmoid(self.odd["patched"].linear(x))

    def forward(self, x):
        for name, module in self.odd.items():
            hooks = (torch.autograd.graph.saved_tensors_hooks(lambda item: item, lambda item: item)
                     if name == "hooked" else contextlib.nullcontext())
            with hooks:
                if name == "checkpointed":
                    x = torch.utils.checkpoint.checkpoint(module, x, use_reentrant=True)
                elif name == "positions":
                    x = module(debug=2, inputs={"x": [x]})
                else:
                    x = module(x * 1)
        return x


def train(name, model, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(steps):
        Late.step += 1
        loss = model(torch.randn(8, WIDTH)).square().sum()
        loss = loss + model(torch.randn(8, WIDTH)).square().sum()
        loss.backward()
        gradients = sum(item.grad.double().sum() for item in model.parameters())
        print(name, loss.item().hex(), gradients.item().hex())
        optimizer.step()
        optimizer.zero_grad()
    print(name, sum(item.double().sum() for item in model.buffers()).item().hex(),
          model.odd["counter"].calls, len(model.odd["lister"].seen), sorted(model.__dict__),
          sorted(model.odd["normal"].__dict__))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    import numpy
    numpy.random.seed(0)
    model = Model()
    train("model", model)
    with torch.no_grad():
        print("without gradients", model(torch.ones(8, WIDTH)).sum().item().hex())

    plain = Model.__new__(Model)
    torch.nn.Module.__init__(plain)
    plain.odd = torch.nn.ModuleDict({key: copy.deepcopy(model.odd[key]) for key in (
        "counter", "normal", "chance", "hooked", "lister")})
    train("parts", plain)
    train("copy", copy.deepcopy(plain))
    train("pickle", pickle.loads(pickle.dumps(plain)))
    file = io.BytesIO()
    torch.save(plain, file)
    file.seek(0)
    train("file", torch.load(file, weights_only=False))
    print("script", torch.jit.script(plain.odd["hooked"])(torch.ones(2, WIDTH)).sum().item().hex())


if __name__ == "__main__":
    main()
