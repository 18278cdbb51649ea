#!/usr/bin/env python3
"""Trains a model of a usual size and shape for some steps, on a device that may be simulated.

Prints PyTorch's own peaks as JSON: bytes allocated, bytes reserved.
"""
import argparse
import json
import random

import torch
import transformers

STEPS = 5


def gpt2():
    """GPT-2 of 124 million parameters, activations recomputed."""
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
    model.gradient_checkpointing_enable()
    return model, 50257, [[(4, 1024)]] * STEPS


def variable():
    """The same without recomputation, sequences of another length in each step."""
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
    chance = random.Random(1)
    return model, 50257, [[(4, chance.randint(128, 1024))] for _ in range(2 * STEPS)]


def bert():
    """BERT-base."""
    model = transformers.BertForMaskedLM(transformers.BertConfig())
    return model, 30522, [[(8, 512)]] * STEPS


def llama():
    """A Llama of 310 million parameters, gradients of four batches added up."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16,
        num_key_value_heads=4, use_cache=False))
    return model, 32000, [[(2, 768)] * 4] * STEPS


def train(model, words, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for batches in steps:
        total = 0.0
        for shape in batches:
            tokens = torch.randint(words, shape, device="cuda")
            loss = model(input_ids=tokens, labels=tokens).loss / len(batches)
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()


def main():
    models = {"gpt2": gpt2, "variable": variable, "bert": bert, "llama": llama}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=models)
    torch.manual_seed(1)
    with torch.device("cuda"):
        model, words, steps = models[parser.parse_args().model]()
    train(model.train(), words, steps)
    print(json.dumps({"allocated_peak": torch.cuda.max_memory_allocated(),
                      "reserved_peak": torch.cuda.max_memory_reserved()}))


if __name__ == "__main__":
    main()
