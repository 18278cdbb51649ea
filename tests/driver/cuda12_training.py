"""A short training that uses cuBLAS, cuDNN, cuFFT and cuSOLVER; run by test_cuda12.py."""
import torch
from torch import nn

network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30 * 30, 512),
                        nn.LayerNorm(512), nn.Linear(512, 10)).cuda()
layer = nn.TransformerEncoderLayer(64, 4, batch_first=True).cuda()
parameters = [*network.parameters(), *layer.parameters()]
optimizer = torch.optim.AdamW(parameters, fused=True)
for _ in range(3):
    images = torch.randn(16, 3, 32, 32, device="cuda")
    labels = torch.randint(0, 10, (16,), device="cuda")
    loss = nn.functional.cross_entropy(network(images), labels)
    loss = loss + layer(torch.randn(4, 32, 64, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.fft.fft(torch.randn(64, device="cuda"))
torch.linalg.solve(torch.eye(4, device="cuda"), torch.ones(4, 1, device="cuda"))
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    images + 1
graph.replay()
torch.cuda.synchronize()
before = torch.cuda.memory_allocated()
block = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
print("cuda", torch.version.cuda, "grown", torch.cuda.memory_allocated() - before,
      "states", sum(len(state) for state in optimizer.state.values()) // len(parameters),
      "sum", torch.arange(5, device="cuda").sum().item())
