#!/usr/bin/env python3
"""A loop with accelerate: mixed precision, accumulation, clipping, checks of the loss, metrics."""
import accelerate
import torch
from torch import nn

CLASSES, WIDTH = 7, 32


def batches(count, batch=16):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(count, WIDTH, generator=generator)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, labels),
                                       batch_size=batch, shuffle=True)


def main():
    torch.manual_seed(0)
    accelerator = accelerate.Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    model, optimizer, train, held_out, schedule = accelerator.prepare(
        model, optimizer, batches(128), batches(40), schedule)
    for _ in range(2):
        model.train()
        total = torch.zeros((), device=accelerator.device)
        for inputs, labels in train:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(inputs), labels)
                if not torch.isfinite(loss):
                    raise RuntimeError("the loss is not finite")
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    assert torch.isfinite(norm)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            total += loss.detach()
        model.eval()
        right = seen = 0
        for inputs, labels in held_out:
            with torch.no_grad():
                found = model(inputs).argmax(-1)
            found, labels = accelerator.gather_for_metrics((found, labels))
            right += (found == labels).sum().item()
            seen += labels.numel()
        accelerator.print(f"loss {total.item() / len(train):.4f}, accuracy {right / seen:.3f}")


if __name__ == "__main__":
    main()
