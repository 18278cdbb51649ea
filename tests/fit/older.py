"""What older versions of PyTorch did with memory, for rows of sources that used them.

A row names them in `older`: "attention" is flash attention before 2.1, whose result had another
layout than the queries, so that the module that calls it copied it; "optimizer" is Adam of 2.0,
which made two temporaries of the size of the model at once; "softmax" kept its input until the
backward pass before 1.11; "gradients" are set to zero and kept, as before 2.0.
"""
import contextlib
from unittest import mock

import torch


def attention(*args, real=torch.nn.functional.scaled_dot_product_attention, **settings):
    result = real(*args, **settings)
    return result.clone() if result.dtype != torch.float32 else result


class Kept(torch.autograd.Function):
    """Its second argument; the first lives until the backward pass has come by."""

    @staticmethod
    def forward(ctx, kept, result):  # pylint: disable=arguments-differ
        ctx.save_for_backward(kept)
        return result.view_as(result)

    @staticmethod
    def backward(ctx, grad):  # pylint: disable=arguments-differ
        return None, grad


def softmax(inputs, *args, real=torch.nn.functional.softmax, **settings):
    if torch.is_autocast_enabled("cuda"):
        inputs = inputs.float()
    return Kept.apply(inputs, real(inputs, *args, **settings))


class Adam(torch.optim.Adam):
    """With the temporaries of 2.0, for all parameters at once."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            trained = [param for param in group["params"] if param.grad is not None]
            for param in trained:
                if not self.state[param]:
                    self.state[param]["means"] = torch.zeros_like(param)
                    self.state[param]["squares"] = torch.zeros_like(param)
            gradients = [param.grad for param in trained]
            means = [self.state[param]["means"] for param in trained]
            squares = [self.state[param]["squares"] for param in trained]
            # pylint: disable=protected-access
            torch._foreach_mul_(means, 0.9)
            torch._foreach_add_(means, gradients, alpha=0.1)
            torch._foreach_mul_(squares, 0.999)
            torch._foreach_addcmul_(squares, gradients, gradients, 0.001)
            roots = torch._foreach_sqrt(squares)
            torch._foreach_div_(roots, 1.0)
            below = torch._foreach_add(roots, group["eps"])
            torch._foreach_addcdiv_(trained, means, below, -group["lr"])
            del roots, below


def optimizer(row, params, **settings):
    """The optimizer of a row."""
    if row["optimizer"] == "Adam" and "optimizer" in row.get("older", ()):
        return Adam(params, **settings)
    return getattr(torch.optim, row["optimizer"])(params, **settings)


@contextlib.contextmanager
def behaviour(row):
    """While a row is trained, what it needs of older versions is in place."""
    with contextlib.ExitStack() as stack:
        for name, function in (("attention", attention), ("softmax", softmax)):
            if name in row.get("older", ()):
                real = {"attention": "scaled_dot_product_attention"}.get(name, name)
                stack.enter_context(mock.patch.object(torch.nn.functional, real, function))
        yield
