#!/usr/bin/env python3
"""A small language model through the Trainer of transformers, with evaluation and a metric."""
import tempfile

import torch
import transformers

WORDS, LENGTH, PAD = 400, 48, 0


class Sentences(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        words = torch.randint(1, WORDS, (LENGTH - index % 9,), generator=generator)
        return {"input_ids": words.tolist(), "labels": words.tolist()}


def collate(rows):
    length = max(len(row["input_ids"]) for row in rows)

    def pad(key, filler):
        return torch.tensor([row[key] + [filler] * (length - len(row[key])) for row in rows])
    ids = pad("input_ids", PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": pad("labels", -100)}


def accuracy(prediction):
    labels = prediction.label_ids[:, 1:]
    hits = (prediction.predictions[:, :-1] == labels) & (labels != -100)
    return {"accuracy": hits.sum() / (labels != -100).sum()}


def main():
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=LENGTH, pad_token_id=PAD))
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, max_steps=6, per_device_train_batch_size=4, logging_steps=2,
            eval_strategy="steps", eval_steps=3, gradient_accumulation_steps=2, max_grad_norm=1.0,
            save_strategy="no", report_to=[], disable_tqdm=True)
        transformers.Trainer(
            model=model, args=arguments, train_dataset=Sentences(48), eval_dataset=Sentences(8),
            data_collator=collate, compute_metrics=accuracy,
            preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1)).train()


if __name__ == "__main__":
    main()
