"""ViT-L/16 as its paper describes it and as torchvision's model keeps it in memory, finetuned as in
Sebastian Raschka's series on memory: plain, in mixed precision, in bfloat16, with smaller batches
and gradients of several added up, with Adam and SGD."""
import torch
from torch import nn
from torch.nn import functional as F

import older

WIDTH, HEADS, LAYERS, CLASSES, SIDE = 1024, 16, 24, 10, 224


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LayerNorm(WIDTH, eps=1e-6)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, dropout=0.0, batch_first=True)
        self.drop = nn.Dropout(0.0)
        self.second = nn.LayerNorm(WIDTH, eps=1e-6)
        self.rest = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Dropout(0.0),
                                  nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.0))

    def forward(self, x):
        y = self.first(x)
        y, _ = self.attention(y, y, y, need_weights=False)
        y = self.drop(y) + x
        return y + self.rest(self.second(y))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 16, 16)
        self.whole = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(torch.zeros(1, (SIDE // 16) ** 2 + 1, WIDTH))
        self.drop = nn.Dropout(0.0)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images):
        x = self.patches(images).reshape(images.shape[0], WIDTH, -1).permute(0, 2, 1)
        x = torch.cat([self.whole.expand(images.shape[0], -1, -1), x], dim=1)
        x = self.norm(self.layers(self.drop(x + self.places)))
        return self.head(x[:, 0])


def build(row):
    torch.set_default_dtype(getattr(torch, row.get("dtype", "float32")))
    model = Transformer()
    torch.set_default_dtype(torch.float32)
    return model


def train(row, model, device):
    """Some batches of training, then some of validation. The gradients are dropped before the
    backward pass, or after a step if those of several batches are added up."""
    dtype, added = getattr(torch, row.get("dtype", "float32")), row.get("accumulate", 1)
    optimizer = older.optimizer(row, model.parameters(), lr=5e-5)
    mixed = row.get("mixed", False)
    scaler = torch.amp.GradScaler("cuda", enabled=mixed)

    def forward():
        images = torch.zeros(row["batch"], 3, SIDE, SIDE).to(device)
        labels = torch.zeros(row["batch"], dtype=torch.long).to(device)
        with torch.autocast("cuda", torch.float16, enabled=mixed):
            logits = model(images.to(dtype))
        return logits.float() if mixed or dtype != torch.float32 else logits, labels

    for step in range(3 * added + 1):
        logits, labels = forward()
        loss = F.cross_entropy(logits, labels) / added
        if added == 1:
            optimizer.zero_grad()
        scaler.scale(loss).backward()
        if step % added == 0:
            scaler.step(optimizer)
            scaler.update()
            if added > 1:
                optimizer.zero_grad()
        guesses = torch.argmax(logits.detach(), 1)
    model.eval()
    with torch.no_grad():
        for _ in range(2):
            logits, labels = forward()
            guesses = torch.argmax(logits, 1)
    del guesses
