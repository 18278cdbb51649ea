#!/usr/bin/env python3
"""Matrix products with gradients; prints digests of the results and PyTorch's view of memory."""
import hashlib
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic matrix products

import torch

SIDE = 1024


def digest(tensor):
    data = tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(data).hexdigest()[:16]


def main():
    for kind in (torch.float32, torch.bfloat16):
        generator = torch.Generator().manual_seed(1)
        x, y = (torch.randn(SIDE, SIDE, generator=generator).to("cuda", kind).requires_grad_()
                for _ in range(2))
        z = (x @ y).relu()
        z.sum().backward()
        for name, tensor in (("product", z), ("gradient", x.grad), ("operand", x)):
            print(f"digest of {str(kind)[6:]} {name}: {digest(tensor)}")
    torch.cuda.synchronize()
    print(f"memory: backend {torch.cuda.memory.get_allocator_backend()}, "
          f"allocated {torch.cuda.memory_allocated()}, peak {torch.cuda.max_memory_allocated()}, "
          f"reserved {torch.cuda.memory_reserved()}")


if __name__ == "__main__":
    main()
