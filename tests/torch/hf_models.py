#!/usr/bin/env python3
"""Trains a small Hugging Face model, built from a configuration: bert, gpt2, llama or resnet."""
import argparse

import torch
import transformers

BATCH, LENGTH, WORDS = 4, 64, 500


def bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=WORDS, hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=512))


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=128, n_layer=3, n_head=4, use_cache=False,
        bos_token_id=0, eos_token_id=0))


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=128, intermediate_size=344, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, use_cache=False))


def resnet():
    return transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[32, 64, 128], depths=[2, 2, 2], num_labels=10))


def batch_for(name):
    if name == "resnet":
        return {"pixel_values": torch.randn(BATCH, 3, 64, 64, device="cuda"),
                "labels": torch.randint(10, (BATCH,), device="cuda")}
    words = torch.randint(WORDS, (BATCH, LENGTH), device="cuda")
    return {"input_ids": words, "labels": words}


def main():
    models = {"bert": bert, "gpt2": gpt2, "llama": llama, "resnet": resnet}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=models)
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--benchmark", action="store_true", help="let cuDNN try its algorithms")
    args = parser.parse_args()

    torch.backends.cudnn.benchmark = args.benchmark
    torch.manual_seed(1)
    model = models[args.model]().cuda().train()
    if args.checkpointing:
        model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(4):
        loss = model(**batch_for(args.model)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, "loss", loss.item())


if __name__ == "__main__":
    main()
