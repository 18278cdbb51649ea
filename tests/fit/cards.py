"""What a card holds besides the memory that PyTorch reserves, for the benchmark `fit`.

`total` is what CUDA reports, as the source printed it. `held` is memory that no program can
reserve: the context, the code of libraries, and what the source's machine had in use. `besides` is
what the source's measure counts beyond the reserved memory. Both are bytes, and come from the
calibration half: `evaluate.py --cards` prints what it says.
"""
MIB = 1 << 20

CARDS = {
    # xMem subtracts what was in use before the model was moved, the context included.
    "RTX 3060": {"profile": "rtx3060-12g", "total": 12622168064, "held": 144 * MIB, "besides": 0},
    "RTX 4060": {"profile": "rtx4060-8g", "total": 8318222336, "held": 112 * MIB, "besides": 0},
    "A100 40GB": {"profile": "a100-40g", "total": 42474471424, "held": 550 * MIB, "besides": 0},
    "A100": {"profile": "a100-80g", "total": 85100000000, "held": 550 * MIB, "besides": 0},
    # GPUMemNet's measurements contain the context, with all code loaded.
    "A100 40GB, GPUMemNet": {"profile": "a100-40g", "total": 42474471424, "held": 550 * MIB,
                             "besides": 1813 * MIB},
    "RTX 4070 Ti SUPER": {"profile": "rtx4070tisuper-16g", "total": 15945 * MIB, "held": 250 * MIB,
                          "besides": 0},
    "H100 96GB": {"profile": "h100-nvl-94g", "total": 95248 * MIB, "held": 700 * MIB, "besides": 0},
    # The installed PyTorch has no code for a V100.
    "V100 16GB": {"profile": "t4-16g", "total": 16945512448, "held": 1343 * MIB, "besides": 0},
    "not stated": {"profile": "a100-40g", "total": 42474471424, "held": 550 * MIB, "besides": 0},
    "RTX PRO 5000 72GB": {"profile": "a100-80g", "total": 72 << 30, "held": 550 * MIB,
                          "besides": 0},
}

# What the upper bound adds to the estimate, as a share of it, by kind of model.
ABOVE = {"transformer": 0.10, "CNN": 0.22, "layers": 0.10}
