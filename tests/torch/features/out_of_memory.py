"""Errors for want of memory, and what programs do then."""
from features import HUGE, MIB, feature, megabytes, need, refusal


def ask(size=HUGE):
    import torch
    return torch.empty(size, dtype=torch.uint8, device="cuda")


@feature("the kind of the error, and its bases")
def error_kind():
    import torch
    try:
        ask()
    except torch.OutOfMemoryError as error:
        return {"bases": [kind.__name__ for kind in type(error).__mro__],
                "same": torch.cuda.OutOfMemoryError is torch.OutOfMemoryError}
    return {}


@feature("the text of the error, with numbers left out")
def error_text():
    import re
    try:
        ask()
    except RuntimeError as error:
        text = re.sub(r"\d+(\.\d+)? [KMGT]?i?B|\d+ bytes|\d+", "N", str(error))
        return {"text": re.sub(r"\s+", " ", text)}
    return {}


@feature("the text of the error: what was asked for, and the parts that programs look for")
def error_words():
    try:
        ask(HUGE)
    except RuntimeError as error:
        text = str(error)
        return {"asked": "Tried to allocate 1048576.00 GiB" in text,
                "words": [word in text for word in ("CUDA out of memory. ", " out of memory.",
                                                    "out of memory", "GPU 0", "capacity",
                                                    "PYTORCH_")]}
    return {}


@feature("the text of the error at the limit of the fraction")
def error_text_of_fraction():
    import torch
    torch.cuda.set_per_process_memory_fraction(0.01)
    try:
        ask(8 << 30)
    except RuntimeError as error:
        return {"asked": "Tried to allocate 8.00 GiB" in str(error),
                "allowed": "allowed" in str(error)}
    return {"error": None}


@feature("catch, free, and ask for less")
def catch_and_ask_for_less():
    import torch
    kept = [megabytes(64) for _ in range(4)]
    error = refusal(ask)
    kept.clear()
    torch.cuda.empty_cache()
    x = megabytes(32)
    return {"error": error.partition(":")[0], "allocated": torch.cuda.memory_allocated(),
            "kept": x.numel()}


@feature("num_ooms and num_alloc_retries after three errors")
def counts_of_errors():
    import torch
    for _ in range(3):
        refusal(ask)
    stats = torch.cuda.memory_stats()
    return {"ooms": stats["num_ooms"], "retries": stats["num_alloc_retries"]}


@feature("a request that fits when the cache was emptied is served")
def served_from_the_cache():
    import torch
    total = torch.cuda.get_device_properties(0).total_memory
    for share in (2, 3, 4):
        x = torch.empty(total * share // 5, dtype=torch.uint8, device="cuda")
        del x
    stats = torch.cuda.memory_stats()
    return {"ooms": stats["num_ooms"], "peak": torch.cuda.max_memory_allocated() // MIB}


@feature("accelerate.find_executable_batch_size")
def accelerate_batch_size():
    accelerate = need("accelerate.utils")
    tried = []

    @accelerate.find_executable_batch_size(starting_batch_size=1 << 20)
    def train(batch_size):
        tried.append(batch_size)
        return ask(batch_size << 30 if batch_size > 1 << 18 else MIB).numel()
    return {"size": train(), "tries": len(tried)}


@feature("accelerate.release_memory and should_reduce_batch_size")
def accelerate_memory():
    import torch
    accelerate = need("accelerate.utils.memory")
    x = megabytes(8)
    try:
        ask()
    except RuntimeError as error:
        reduce = accelerate.should_reduce_batch_size(error)
    x, = accelerate.release_memory(x)
    return {"reduce": reduce, "allocated": torch.cuda.memory_allocated()}


def finds(recognises):
    """How a loop that halves the batch ends which knows the error by its text."""
    size, tries = 1 << 20, 0
    while True:
        tries += 1
        try:
            return ask(size << 30 if size > 1 << 18 else MIB).numel(), tries
        except RuntimeError as error:
            if not recognises(error):
                return f"not recognised: {type(error).__name__}", tries
            size //= 2


@feature("a batch finder as Lightning's: CUDA and out of memory in the text")
def lightning_batch_size():
    return {"found": finds(lambda error: len(error.args) == 1 and "CUDA" in error.args[0] and
                           "out of memory" in error.args[0])}


@feature("a retry as detectron2's: \"CUDA out of memory. \" in the text")
def detectron_retry():
    return {"found": finds(lambda error: "CUDA out of memory. " in str(error))}


@feature("a finder as fastai's: the text and its bytes")
def fastai_batch_size():
    return {"found": finds(lambda error: "CUDA out of memory" in str(error) or
                           "tried to allocate" in str(error).lower())}


@feature("a finder as toma's: out of memory in the text")
def toma_batch_size():
    return {"found": finds(lambda error: "out of memory" in str(error))}


@feature("a finder that looks for the class")
def class_batch_size():
    import torch
    return {"found": finds(lambda error: isinstance(error, torch.cuda.OutOfMemoryError))}


@feature("the error comes out of backward, with its class")
def error_in_backward():
    import torch

    class Greedy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            ask()
            return gradient
    x = torch.ones(10, device="cuda", requires_grad=True)
    error = refusal(Greedy.apply(x).sum().backward)
    return {"error": error.partition(":")[0], "then": megabytes(1).numel()}


@feature("the error in a thread, and other threads go on")
def error_in_a_thread():
    import threading
    errors = []
    thread = threading.Thread(target=lambda: errors.append(refusal(ask)))
    thread.start()
    x = megabytes(2)
    thread.join()
    return {"errors": [error.partition(":")[0] for error in errors], "sum": x.sum().item()}


@feature("memory is not kept by the error's frames once it is handled")
def error_frames():
    import gc

    import torch

    def work():
        held = megabytes(64)
        ask()
        return held
    error = refusal(work)
    gc.collect()
    return {"error": error.partition(":")[0], "allocated": torch.cuda.memory_allocated()}


@feature("the largest tensor of several operators is too large: empty, zeros, full, rand, cat")
def errors_of_operators():
    import torch
    size = HUGE // 4
    x = torch.ones(1, device="cuda").expand(size)
    calls = {"zeros": lambda: torch.zeros(size, device="cuda"),
             "full": lambda: torch.full((size,), 1.0, device="cuda"),
             "rand": lambda: torch.rand(size, device="cuda"),
             "clone": lambda: x.clone(memory_format=torch.contiguous_format),
             "add": lambda: x.contiguous(), "cat": lambda: torch.cat([x, x])}
    return {name: refusal(call).partition(":")[0] for name, call in calls.items()}


@feature("sizes that overflow: more than 2^63 bytes")
def impossible_sizes():
    import torch
    return {"elements": refusal(torch.empty, 1 << 62, dtype=torch.float64, device="cuda"),
            "raw": (refusal(torch.cuda.caching_allocator_alloc, 1 << 61) or "").partition(":")[0]}


@feature("pinned memory for which there is no room")
def pinned_error():
    import torch
    torch.zeros(1, device="cuda")
    error = refusal(torch.empty, HUGE, dtype=torch.uint8, pin_memory=True)
    return {"error": error.partition(":")[0], "then": torch.empty(10, pin_memory=True).is_pinned()}
