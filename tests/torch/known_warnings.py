#!/usr/bin/env python3
"""Does what PyTorch warns about on the backend cudaMallocAsync, and on no other."""
import torch

tensor = torch.ones(1024, device="cuda")
tensor.record_stream(torch.cuda.current_stream())
torch.cuda.reset_accumulated_memory_stats()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured = tensor * 2
graph.replay()
del captured
torch.cuda.synchronize()
