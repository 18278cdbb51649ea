#!/usr/bin/env python3
"""Trains a model of transformers with four billion parameters, the shape of Qwen3-4B: bf16, AdamW,
activations recomputed layer by layer, three steps. Prints the number of parameters and PyTorch's
peaks in bytes, as JSON.
"""
import json

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

SHAPE = {"vocab_size": 151936, "hidden_size": 2560, "intermediate_size": 9728,
         "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": 128, "tie_word_embeddings": True}
BATCH, LENGTH, STEPS = 2, 2048, 3


def main():
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Qwen3ForCausalLM(Qwen3Config(**SHAPE))
    model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for _ in range(STEPS):
        tokens = torch.randint(SHAPE["vocab_size"], (BATCH, LENGTH), device="cuda")
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(json.dumps({"parameters": sum(part.numel() for part in model.parameters()),
                      "allocated_peak": torch.cuda.max_memory_allocated(),
                      "reserved_peak": torch.cuda.max_memory_reserved()}))


if __name__ == "__main__":
    main()
