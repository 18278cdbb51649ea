#!/usr/bin/env python3
"""Train a model that needs cuFFT, cuSOLVER, cuSPARSE, and less common parts of cuDNN."""
import torch
from torch import nn
from torch.nn import functional

SIZE, BATCH, LABELS, LENGTH = 32, 4, 20, 8


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(SIZE, SIZE // 2 + 1, 2))
        self.basis = nn.Parameter(torch.randn(SIZE, SIZE))
        self.turn = nn.Parameter(torch.eye(2, 3).repeat(BATCH, 1, 1))
        self.predict = nn.Linear(SIZE, LABELS)
        pattern = torch.eye(SIZE).to_sparse()
        self.register_buffer("pattern", pattern, persistent=False)

    def forward(self, images):
        spectrum = torch.fft.rfft2(images) * torch.view_as_complex(self.filter)
        images = torch.fft.irfft2(spectrum, s=(SIZE, SIZE))
        grid = functional.affine_grid(self.turn, images.shape, align_corners=True)
        images = functional.grid_sample(images, grid, align_corners=True)
        orthogonal, _ = torch.linalg.qr(self.basis)
        gram = orthogonal @ orthogonal.T + torch.eye(SIZE, device=images.device)
        images = torch.linalg.solve(gram, images) @ torch.linalg.cholesky(gram)
        rows = images[:, 0].transpose(0, 1).reshape(SIZE, -1)
        rows = torch.sparse.mm(self.pattern, rows).reshape(SIZE, BATCH, SIZE)
        return self.predict(rows).log_softmax(-1)


def main():
    torch.manual_seed(0)
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    labels = torch.randint(1, LABELS, (BATCH * LENGTH,), dtype=torch.int32)
    for step in range(4):
        scores = model(torch.randn(BATCH, 1, SIZE, SIZE, device="cuda"))
        loss = functional.ctc_loss(scores, labels, (SIZE,) * BATCH, (LENGTH,) * BATCH)
        loss = loss + torch.linalg.eigvalsh(model.basis + model.basis.T).sum()
        loss = loss + torch.linalg.svdvals(model.basis).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, "loss", loss.item())


if __name__ == "__main__":
    main()
