#!/usr/bin/env python3
"""Trains small models through the Trainer of transformers, with and without its own checkpointing,
and through accelerate. Prints the losses, bit for bit."""
import tempfile

import accelerate
import torch
import transformers

from recomputing import WORDS, Model, words


class Print(transformers.TrainerCallback):
    def on_log(self, args, state, control, logs=None, **rest):
        print({key: float(logs[key]).hex() for key in ("loss", "grad_norm", "eval_loss")
               if key in logs})


def trained(checkpointing):
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=WORDS, n_positions=16, n_embd=64, n_layer=3, n_head=4, bos_token_id=0,
        eos_token_id=0))
    data = [{"input_ids": item, "labels": item} for item in torch.randint(WORDS, (12, 16))]
    with tempfile.TemporaryDirectory() as folder:
        trainer = transformers.Trainer(model, transformers.TrainingArguments(
            folder, use_cpu=True, max_steps=4, logging_steps=1, per_device_train_batch_size=2,
            gradient_accumulation_steps=2, save_steps=2, eval_strategy="steps", eval_steps=2,
            gradient_checkpointing=checkpointing, report_to=[], disable_tqdm=True),
            train_dataset=data, eval_dataset=data[:4], callbacks=[Print()])
        trainer.remove_callback(transformers.PrinterCallback)  # prints times
        trainer.train()


def accelerated():
    torch.manual_seed(0)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = Model()
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    batches = words()
    for _ in range(4):
        with accelerator.accumulate(model):
            loss = model(**batches())
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            print(loss.item().hex())
    print(type(accelerator.unwrap_model(model)).__name__,
          sum(item.double().sum() for item in model.parameters()).item().hex())


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    trained(checkpointing=False)
    trained(checkpointing=True)
    accelerated()


if __name__ == "__main__":
    main()
