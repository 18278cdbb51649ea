#!/usr/bin/env python3
"""Eight small programs that use memory as large ones do, for the benchmark `predict`.

    torch_programs.py NAME    runs one; without a name, prints the names

Each marks where its steps begin by spillway_mark_step. Sizes are small, since only the order of
uses and the sizes relative to each other matter.
"""
import ctypes
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, LENGTH, BATCH = 256, 4, 64, 8
DEVICE = "cuda"


def mark():
    """Nothing without spillway."""
    step = getattr(ctypes.CDLL(None), "spillway_mark_step", None)
    if step is not None:
        step()


def layers(count):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH,
                                                            batch_first=True), count).to(DEVICE)


def text(length=LENGTH):
    return torch.randn(BATCH, length, WIDTH, device=DEVICE)


def train(model, optimizer, batch):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def transformer():
    model = layers(4)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(16):
        mark()
        train(model, optimizer, text())


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def convolution():
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), Residual(32), Residual(32),
                          nn.Conv2d(32, 64, 3, 2, padding=1), Residual(64), Residual(64),
                          nn.Conv2d(64, 128, 3, 2, padding=1), Residual(128),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 1000)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(16):
        mark()
        train(model, optimizer, torch.randn(8, 3, 64, 64, device=DEVICE))


class Recurrent(nn.Module):
    """Cells, one after the other, as people write them who need more than nn.LSTM has."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5000, WIDTH)
        self.cell = nn.LSTMCell(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, 5000)

    def forward(self, words):
        state, outputs = None, []
        for word in self.words(words).unbind(1):
            state = self.cell(word, state)
            outputs.append(self.out(state[0]))
        return torch.stack(outputs, 1)


def recurrent():
    model = Recurrent().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(16):
        mark()
        train(model, optimizer, torch.zeros(BATCH, 16, dtype=torch.long, device=DEVICE))


class Recomputed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(layers(4).layers)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


def checkpointing():
    """Two batches a step, whose gradients are added, and layers that are computed again."""
    model = Recomputed()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(12):
        mark()
        model(text()).square().mean().backward()
        train(model, optimizer, text())


def evaluation():
    """Three batches without gradients after each five steps."""
    model = layers(4)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        for _ in range(5):
            mark()
            train(model, optimizer, text())
        model.eval()
        mark()
        with torch.no_grad():
            for _ in range(3):
                model(text(2 * LENGTH)).square().mean()
        model.train()


def variable():
    """The batches of a step are padded to a length that differs from step to step."""
    model = layers(4)
    optimizer = torch.optim.AdamW(model.parameters())
    chance = torch.Generator().manual_seed(1)
    for _ in range(20):
        mark()
        train(model, optimizer, text(int(torch.randint(16, 129, (), generator=chance))))


def inference():
    model = layers(8).eval()
    with torch.no_grad():
        for _ in range(24):
            mark()
            model(text())


class Denoiser(nn.Module):
    """The shape of a U-Net: what the way down computes is used again on the way up."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 32, 3, padding=1)
        self.down = nn.ModuleList(nn.Conv2d(32 << i, 64 << i, 3, 2, padding=1) for i in range(3))
        self.middle = Residual(256)
        self.up = nn.ModuleList(nn.ConvTranspose2d(64 << i, 32 << i, 2, 2)
                                for i in reversed(range(3)))
        self.last = nn.Conv2d(32, 4, 3, padding=1)

    def forward(self, x):
        kept = [self.first(x)]
        for layer in self.down:
            kept.append(torch.relu(layer(kept[-1])))
        x = self.middle(kept.pop())
        for layer in self.up:
            x = torch.relu(layer(x)) + kept.pop()
        return self.last(x)


def diffusion():
    """Three images, each in twelve steps by one model, and the decoder that ends each."""
    model, decoder = Denoiser().to(DEVICE).eval(), nn.Sequential(
        nn.Conv2d(4, 64, 3, padding=1), Residual(64), nn.Upsample(scale_factor=2),
        nn.Conv2d(64, 3, 3, padding=1)).to(DEVICE).eval()
    with torch.no_grad():
        for _ in range(3):
            image = torch.randn(4, 4, 64, 64, device=DEVICE)
            for _ in range(12):
                mark()
                image = image - 0.1 * model(image)
            mark()
            decoder(image)


PROGRAMS = {function.__name__: function for function in
            (transformer, convolution, recurrent, checkpointing, evaluation, variable, inference,
             diffusion)}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("\n".join(PROGRAMS))
    else:
        PROGRAMS[sys.argv[1]]()
        torch.cuda.synchronize()
