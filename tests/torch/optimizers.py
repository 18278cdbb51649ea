#!/usr/bin/env python3
"""Two steps with one of PyTorch's optimizers. Prints the bytes of its state on the device, each
tensor rounded up to 512 bytes; the run holds most memory at its end, with the state alive."""
import argparse

import torch
from torch import nn

OPTIMIZERS = {
    "adam": lambda parameters: torch.optim.Adam(parameters),
    "adamw_fused": lambda parameters: torch.optim.AdamW(parameters, fused=True),
    "adamw_loop": lambda parameters: torch.optim.AdamW(parameters, foreach=False, amsgrad=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=0.1,
                                              foreach=True),
    "sgd_fused": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9, fused=True),
    "sgd_loop": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9, foreach=False,
                                                   weight_decay=0.1, nesterov=True),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, weight_decay=0.1),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, momentum=0.9, centered=True),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("optimizer", choices=OPTIMIZERS)
    parser.add_argument("--resume", action="store_true", help="load the state of the first step")
    options = parser.parse_args()
    model = nn.Sequential(nn.Linear(500, 700), nn.GELU(), nn.Linear(700, 500)).to("cuda")
    optimizer = OPTIMIZERS[options.optimizer](model.parameters())
    for _ in range(2):
        model(torch.ones(16, 500, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    if options.resume:
        saved = torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu,
                                                  optimizer.state_dict())
        optimizer = OPTIMIZERS[options.optimizer](model.parameters())
        optimizer.load_state_dict(saved)
    tensors = [value for state in optimizer.state.values() for value in state.values()
               if isinstance(value, torch.Tensor) and value.is_cuda]
    most = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    print(sum(-(-tensor.nbytes // 512) * 512 for tensor in tensors), len(tensors), most.nbytes)


if __name__ == "__main__":
    main()
