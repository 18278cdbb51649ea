"""Figures that may differ from a plain run, each with the reason: PyTorch does not define them, or
they follow from what spillway is. What is not here must be equal."""
import fnmatch

POOL = "[at]*"  # auto and tensor: the pool serves tensors

# (feature, figure, modes, reason): the first three are patterns of the shell.
UNDEFINED = [
    ("*", "reserved*", POOL, "memory is reserved in the pool's chunks, not in segments of a cache"),
    ("*", "segment.*", POOL, "the pool's chunks are the segments"),
    ("*", "inactive_split*", POOL, "the pool has no split blocks"),
    ("stats_device_calls", "device_*", POOL, "calls of the driver that make and release chunks"),
    ("figures_of_a_random_program", "*", POOL,
     "a block of PyTorch's cache may be larger than its tensor, and counts whole"),
    ("accelerator_memory_info", "free is less", POOL, "what the pool holds for nobody is free"),
    ("settings_async", "reserved", "segment",
     "PyTorch asks the driver's pool for it, and spillway's pool answers"),
    ("expandable_snapshot", "expandable", POOL, "tensors of the pool are no expandable segments"),
]


def reason(feature, figure, mode):
    """Why this figure may differ in this mode, or None."""
    for features, figures, modes, why in UNDEFINED:
        if (fnmatch.fnmatch(feature, features) and fnmatch.fnmatch(figure, figures)
                and fnmatch.fnmatch(mode, modes)):
            return why
    return None
