"""BERT-large as a guide of transformers trains it to classify texts of 512 tokens: plain, with
gradients of four batches added up, checkpointed, in mixed precision, with Adafactor. The loop is
written anew, as the library's trainer of January 2022 works."""
import torch
import transformers

LENGTH = 512


def build(row):
    config = transformers.BertConfig(hidden_size=1024, num_hidden_layers=24,
                                     num_attention_heads=16, intermediate_size=4096)
    model = transformers.AutoModelForSequenceClassification.from_config(
        config, attn_implementation="eager")
    if row.get("checkpointing"):
        model.gradient_checkpointing_enable({"use_reentrant": True})
        model.enable_input_require_grads()
    return model


def make_optimizer(row, model):
    if row["optimizer"] == "Adafactor":
        return transformers.optimization.Adafactor(
            model.parameters(), lr=5e-5, scale_parameter=False, relative_step=False)
    return torch.optim.AdamW(model.parameters(), lr=5e-5, foreach=False)


def train(row, model, device):
    optimizer, added = make_optimizer(row, model), row.get("accumulate", 1)
    mixed, kept = row.get("mixed", False), "gradients" in row.get("older", ())
    scaler = torch.amp.GradScaler("cuda", enabled=mixed)
    model.zero_grad(set_to_none=not kept)
    for step in range(3 * added):
        tokens = torch.zeros(row["batch"], LENGTH, dtype=torch.long).to(device)
        labels = torch.zeros(row["batch"], dtype=torch.long).to(device)
        with torch.autocast("cuda", torch.float16, enabled=mixed):
            outputs = model(input_ids=tokens, labels=labels)
        loss = outputs.loss / added
        scaler.scale(loss).backward()
        del outputs
        if step % added == added - 1:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
            scaler.step(optimizer)
            scaler.update()
            model.zero_grad(set_to_none=not kept)
