#!/usr/bin/env python3
"""A small convolutional network as the examples of image models train one: mixed precision with a
scaler, mixing of images, an average of the weights, top-1 and top-5 accuracy."""
import torch
from torch import nn

CLASSES, SIDE = 10, 16


class Average:
    def __init__(self):
        self.total = self.count = 0

    def update(self, value, count):
        self.total += value * count
        self.count += count

    @property
    def value(self):
        return self.total / self.count


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, CLASSES))


def accuracy(output, target, most=(1, 5)):
    found = output.topk(max(most), 1).indices.t()
    right = found.eq(target[None])
    return [right[:k].reshape(-1).float().sum() * (100 / target.numel()) for k in most]


def batches(count, device, rows=16):
    for step in range(count):
        generator = torch.Generator().manual_seed(step)
        images = torch.randn(rows, 3, SIDE, SIDE, generator=generator)
        labels = torch.randint(CLASSES, (rows,), generator=generator)
        yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = network().to(device)
    mean = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler(device)
    losses, top1, top5 = Average(), Average(), Average()
    for images, labels in batches(6, device):
        order = torch.randperm(len(images), device=device)
        images = 0.7 * images + 0.3 * images[order]
        with torch.autocast(device, dtype=torch.float16):
            output = model(images)
            loss = (0.7 * nn.functional.cross_entropy(output, labels, label_smoothing=0.1) +
                    0.3 * nn.functional.cross_entropy(output, labels[order], label_smoothing=0.1))
        if loss.isnan().any():
            raise SystemExit("the loss is not a number")
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        mean.update_parameters(model)
        losses.update(loss.item(), len(labels))
    mean.eval()
    with torch.no_grad():
        for images, labels in batches(3, device):
            first, fifth = accuracy(mean(images), labels)
            top1.update(first.item(), len(labels))
            top5.update(fifth.item(), len(labels))
    print(f"loss {losses.value:.3f}, top-1 {top1.value:.1f}, top-5 {top5.value:.1f}")


if __name__ == "__main__":
    main()
