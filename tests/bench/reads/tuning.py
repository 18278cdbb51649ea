#!/usr/bin/env python3
"""Supervised fine-tuning with TRL: once with padding, once with texts packed to one length."""
import tempfile

import datasets
import tokenizers
import torch
import transformers
import trl

WORDS = 200


def tokenizer():
    vocabulary = {"<pad>": 0, "<end>": 1, "<unk>": 2, **{f"w{i}": 3 + i for i in range(WORDS)}}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<pad>", eos_token="<end>", unk_token="<unk>")


def texts(count=48):
    generator = torch.Generator().manual_seed(0)
    return [" ".join(f"w{word}" for word in torch.randint(
        WORDS, (8 + index % 13,), generator=generator).tolist()) for index in range(count)]


def main():
    torch.manual_seed(0)
    data = datasets.Dataset.from_dict({"text": texts()})
    for packing in (False, True):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=WORDS + 3, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1))
        with tempfile.TemporaryDirectory() as folder:
            trl.SFTTrainer(model, args=trl.SFTConfig(
                output_dir=folder, max_length=32, packing=packing, max_steps=4, logging_steps=1,
                per_device_train_batch_size=4, report_to=[], disable_tqdm=True, bf16=False,
                save_strategy="no"), train_dataset=data, processing_class=tokenizer()).train()


if __name__ == "__main__":
    main()
