#!/usr/bin/env python3
"""A classifier of padded texts, fine-tuned with adapters of peft; counts of each class."""
import peft
import torch
import transformers

WORDS, CLASSES, PAD = 300, 3, 0


def batch(step, rows=8, longest=24):
    generator = torch.Generator().manual_seed(step)
    lengths = torch.randint(6, longest + 1, (rows,), generator=generator)
    words = torch.randint(1, WORDS, (rows, longest), generator=generator)
    mask = torch.arange(longest) < lengths[:, None]
    return {"input_ids": words.where(mask, PAD), "attention_mask": mask.long(),
            "labels": torch.randint(CLASSES, (rows,), generator=generator)}


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = transformers.LlamaForSequenceClassification(transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, num_labels=CLASSES, pad_token_id=PAD))
    model = peft.get_peft_model(model, peft.LoraConfig(
        task_type="SEQ_CLS", r=4, target_modules=["q_proj", "v_proj"])).to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    table = torch.zeros(CLASSES, CLASSES, dtype=torch.long, device=device)
    for step in range(6):
        inputs = {key: value.to(device) for key, value in batch(step).items()}
        longest = int(inputs["attention_mask"].sum(-1).max())
        inputs = {key: value[:, :longest] if value.ndim == 2 else value
                  for key, value in inputs.items()}
        out = model(**inputs)
        out.loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()
        optimizer.zero_grad()
        for label in inputs["labels"].unique().tolist():
            chosen = inputs["labels"] == label
            found = out.logits[chosen].argmax(-1)
            table[label] += torch.bincount(found, minlength=CLASSES)
        print(step, longest, f"{out.loss.item():.4f}", f"{norm.item():.4f}")
    print(table.sum(-1).tolist(), table.diag().sum().item())


if __name__ == "__main__":
    main()
