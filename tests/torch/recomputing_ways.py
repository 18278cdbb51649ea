#!/usr/bin/env python3
"""Uses a model in other ways than training: prints what PyTorch's tracers, compilers, transforms
and modes make of it. It must be the same with a rule that computes modules again."""
import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad
from torch.utils.flop_counter import FlopCounterMode

from recomputing import Model, words


class Nested(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.Sequential(*[
            torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()) for _ in range(2)])

    def forward(self, x):
        return self.parts(x)


class Later(Nested):
    pass


def total(tensors):
    return sum(item.double().sum() for item in tensors).item().hex()


def backward(model, batch):
    model(**batch).backward(retain_graph=True)
    print("gradients", total(item.grad for item in model.parameters()))
    loss = model(**batch)
    loss.backward(retain_graph=True)
    once = [item.grad.clone() for item in model.parameters()]
    loss.backward()
    print("twice", total(item.grad for item in model.parameters()), total(once))
    model.eval()
    found = torch.autograd.grad(model(**batch), list(model.parameters()), create_graph=True)
    sum(item.square().sum() for item in found).backward()
    print("of gradients", total(item.grad for item in model.parameters()))


def tracers(block, x):
    print("trace", torch.jit.trace(block, x)(x).sum().item().hex())
    nodes = torch.export.export(block, (x,)).graph.nodes
    print("export", [str(node.target) for node in nodes])
    print("func", total(grad(lambda values: functional_call(block, values, (x,)).sum())(
        dict(block.named_parameters())).values()))
    for model in (Nested(), Nested()):
        print("fx before", [node.target for node in torch.fx.symbolic_trace(model).graph.nodes])
        model(torch.ones(2, 4)).sum().backward()
        print("fx", [node.target for node in torch.fx.symbolic_trace(model).graph.nodes])
    print("script", torch.jit.script(Nested())(torch.zeros(1, 4)).shape)


def modes(model, batch):
    with FlopCounterMode(display=False) as counter:
        model(**batch)
    print("operations", counter.get_total_flops())
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            print(mode.__name__, model(**batch).item().hex())
    with torch.device("meta"):
        loss = Model()(**words()())
        loss.backward()
        print(loss.device)
    with FakeTensorMode():
        Model()(**words()()).backward()


def replaced():
    """A program that replaces how modules are called."""
    Nested()(torch.ones(2, 4))
    plain = torch.nn.Module.__call__
    torch.nn.Module.__call__ = lambda self, *args: plain(self, *args)
    model = Later()
    model(torch.ones(2, 4)).sum().backward()
    print("replaced", total(item.grad for item in model.parameters()))
    torch.nn.Module.__call__ = plain


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, batch = Model().train(), words()()
    backward(model, batch)
    tracers(model.blocks[0], torch.ones(1, 4, 64))
    modes(model, batch)
    replaced()
    function = torch.compile(lambda batch: model(**batch), backend="aot_eager", fullgraph=True)
    loss = function(batch)
    loss.backward()
    print("compiled", loss.item().hex(), total(item.grad for item in model.parameters()))


if __name__ == "__main__":
    main()
