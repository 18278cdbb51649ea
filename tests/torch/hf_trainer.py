#!/usr/bin/env python3
"""Trains a small GPT-2 through the Trainer of Hugging Face."""
import tempfile

import torch
import transformers

WORDS, LENGTH = 500, 64


class Text(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        words = torch.randint(WORDS, (LENGTH,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": words, "labels": words}


def main():
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=128, n_layer=2, n_head=4, use_cache=False,
        bos_token_id=0, eos_token_id=0))
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, max_steps=4, per_device_train_batch_size=4, report_to=[],
            gradient_accumulation_steps=2, bf16=True, save_strategy="no", logging_steps=1,
            disable_tqdm=True)
        transformers.Trainer(model=model, args=arguments, train_dataset=Text()).train()


if __name__ == "__main__":
    main()
