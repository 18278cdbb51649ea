#!/usr/bin/env python3
"""Says in JSON which allocator PyTorch uses, and what its children see of PyTorch's settings.

    allocator.py [NAME=VALUE]...   sets variables before torch is imported
"""
import json
import os
import subprocess
import sys

for setting in sys.argv[1:]:
    name, _, value = setting.partition("=")
    os.environ[name] = value

import torch

torch.ones(1, device="cuda")
torch.ones(1 << 20).pin_memory()
backend = torch.cuda.get_allocator_backend()
children = subprocess.run(["env"], text=True, capture_output=True, check=True).stdout
print(json.dumps({
    "backend": backend,
    "expandable": backend == "native" and
                  torch.cuda.memory._snapshot()["allocator_settings"]["expandable_segments"],
    "children": sorted(line for line in children.splitlines() if line.startswith("PYTORCH_")),
}))
