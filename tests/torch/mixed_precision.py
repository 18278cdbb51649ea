#!/usr/bin/env python3
"""Computes in half precision: autocast with a GradScaler, bfloat16, and a model that is half."""
import torch
from torch import nn


def network():
    return nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.LayerNorm(2048),
                         nn.Linear(2048, 512)).cuda()


def with_scaler():
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(4):
        with torch.autocast("cuda", torch.float16):
            loss = model(torch.randn(128, 512, device="cuda")).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    print("scale", scaler.get_scale())


def with_bfloat16():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(torch.randn(128, 512, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("bfloat16", loss.item())


def with_half():
    model = network().half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        loss = model(torch.randn(128, 512, device="cuda").half()).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("half", loss.item())


with_scaler()
with_bfloat16()
with_half()
