#!/usr/bin/env python3
"""Train a recurrent language model, on cuDNN where there is one.

    lstm.py [--cell LSTM|GRU|RNN] [--packed]

--packed trains on sequences of unlike lengths, without padding between them.
"""
import argparse

import torch
from torch import nn
from torch.nn.utils import rnn

WORDS, WIDTH, LENGTH, BATCH = 1000, 128, 48, 8


class Model(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.cell = cell(WIDTH, 2 * WIDTH, num_layers=2, batch_first=True, dropout=0.2)
        self.predict = nn.Linear(2 * WIDTH, WORDS)

    def forward(self, words, lengths, state):
        inputs = self.embed(words)
        if lengths is None:
            outputs, state = self.cell(inputs, state)
        else:
            packed = rnn.pack_padded_sequence(inputs, lengths, batch_first=True)
            outputs, state = self.cell(packed, state)
            outputs, _ = rnn.pad_packed_sequence(outputs, batch_first=True, total_length=LENGTH)
        return self.predict(outputs), state


def detached(state):
    return tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cell", default="LSTM")
    parser.add_argument("--packed", action="store_true")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = Model(getattr(nn, options.cell)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    lengths = [LENGTH - 3 * i for i in range(BATCH)] if options.packed else None
    state = None
    for step in range(4):
        words = torch.randint(WORDS, (BATCH, LENGTH + 1), device="cuda")
        scores, state = model(words[:, :-1], lengths, state)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        optimizer.zero_grad()
        # The next part of the text goes on where this one ends, but gradients stop here.
        state = detached(state)
        print("step", step, "loss", loss.item())
    model.eval()
    with torch.no_grad():
        model(words[:, :-1], lengths, None)


if __name__ == "__main__":
    main()
