"""Trains a small GPT-2 through the Trainer of Hugging Face, with spillway's figures in its logs.

    hf_logged.py FOLDER        TensorBoard's events go there; prints the history as JSON
"""
import json
import sys

import spillway
import spillway.transformers
import torch
import transformers

WORDS, LENGTH = 500, 64


class Text(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        words = torch.randint(WORDS, (LENGTH,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": words, "labels": words}


class Witness(transformers.TrainerCallback):
    """What the process holds at each log."""
    live = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        devices = spillway.stats().get("devices")
        if "loss" in logs and devices:
            self.live.append(devices[0]["live_bytes"])


def main():
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=512, n_layer=4, n_head=4, use_cache=False,
        bos_token_id=0, eos_token_id=0))
    trainer = transformers.Trainer(
        model=model, train_dataset=Text(), callbacks=[Witness()],
        args=transformers.TrainingArguments(
            output_dir=sys.argv[1], max_steps=4, logging_steps=2,
            per_device_train_batch_size=4, gradient_accumulation_steps=2, save_strategy="no",
            report_to=["tensorboard"], disable_tqdm=True))
    spillway.transformers.log_memory(trainer)
    trainer.train()
    print(json.dumps({"history": trainer.state.log_history, "live": Witness.live}))


if __name__ == "__main__":
    main()
