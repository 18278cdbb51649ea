"""Settings of PyTorch's allocator, from the environment and at run time."""
from features import MIB, feature, megabytes, need_name, refusal

CONF = "PYTORCH_CUDA_ALLOC_CONF"
NEW_CONF = "PYTORCH_ALLOC_CONF"


def figures():
    """A program that shows how blocks are rounded, split and kept."""
    import torch
    kept = [torch.empty(size, dtype=torch.uint8, device="cuda")
            for size in (1000, 3 * MIB, 30 * MIB, 150 * MIB)]
    del kept[2]
    kept.append(torch.empty(12 * MIB, dtype=torch.uint8, device="cuda").fill_(1))
    stats = torch.cuda.memory_stats()
    return {"allocated": torch.cuda.memory_allocated(), "peak": torch.cuda.max_memory_allocated(),
            "requested": stats["requested_bytes.all.current"],
            "reserved": torch.cuda.memory_reserved(), "sum": kept[-1].sum().item(),
            "backend": torch.cuda.get_allocator_backend()}


def setting(text, what, name=CONF, long=True, **more):
    """Enters a feature that runs the program with a text of settings. To import PyTorch anew takes
    seconds, so most are left to the long tests."""
    def enter(function_name):
        def call():
            return figures()
        call.__name__, call.__module__ = function_name, __name__
        feature(what, settings={name: text}, long=long, **more)(call)
    return enter


setting("expandable_segments:True", "expandable_segments", long=False)("settings_expandable")
setting("expandable_segments:True", "expandable_segments by the newer name", NEW_CONF,
        since=(2, 9))("settings_expandable_new_name")
setting("max_split_size_mb:64", "max_split_size_mb")("settings_max_split")
setting("roundup_power2_divisions:4", "roundup_power2_divisions")("settings_roundup")
setting("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
        "roundup_power2_divisions by sizes")("settings_roundup_list")
setting("garbage_collection_threshold:0.6", "garbage_collection_threshold")("settings_collection")
setting("max_non_split_rounding_mb:40", "max_non_split_rounding_mb")("settings_rounding")
setting("release_lock_on_cudamalloc:True", "release_lock_on_cudamalloc")("settings_lock")
setting("graph_capture_record_stream_reuse:True", "graph_capture_record_stream_reuse",
        since=(2, 10))("settings_graph_reuse")
setting("per_process_memory_fraction:0.5", "per_process_memory_fraction",
        since=(2, 11))("settings_fraction")
setting("pinned_use_cuda_host_register:True,pinned_num_register_threads:2",
        "pinned_use_cuda_host_register")("settings_host_register")
setting("pinned_use_background_threads:True",
        "pinned_use_background_threads")("settings_background_threads")
setting("large_segment_size_mb:40", "large_segment_size_mb",
        since=(2, 10))("settings_segment_size")
setting("backend:native", "backend:native, by name")("settings_native")
setting("backend:cudaMallocAsync", "backend:cudaMallocAsync, by name")("settings_async")
setting("expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.8",
        "several keys, as clusters set them", long=False)("settings_several")


@feature("a key that nobody knows, given at run time")
def unknown_setting():
    import torch
    torch.zeros(1, device="cuda")
    error = refusal(torch.cuda.memory._set_allocator_settings, "no_such_key:1")
    return {"error": (error or "").partition(":")[0], "then": megabytes(1).sum().item()}


@feature("_set_allocator_settings: expandable_segments on and off, with tensors of both")
def expandable_at_run_time():
    import torch
    x = megabytes(3)
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    y = megabytes(5)
    torch.cuda.memory._set_allocator_settings("expandable_segments:False")
    z = megabytes(7)
    sums = [tensor.sum().item() // MIB for tensor in (x, y, z)]
    del x, y
    return {"sums": sums, "allocated": torch.cuda.memory_allocated(), "kept": z.numel()}


@feature("_set_allocator_settings: expandable_segments many times, as trainers toggle it")
def expandable_toggled():
    import torch
    total = 0
    for turn in range(20):
        torch.cuda.memory._set_allocator_settings(f"expandable_segments:{turn % 2 == 0}")
        total += megabytes(3).sum().item() // MIB
    return {"total": total, "allocated": torch.cuda.memory_allocated()}


@feature("_set_allocator_settings: splitting, rounding, collection")
def settings_at_run_time():
    import torch
    torch.zeros(1, device="cuda")
    for text in ("max_split_size_mb:64", "garbage_collection_threshold:0.5",
                 "roundup_power2_divisions:8"):
        torch.cuda.memory._set_allocator_settings(text)
    x = torch.empty(3 * MIB + 5, dtype=torch.uint8, device="cuda")
    return {"kept": x.numel(), "requested":
            torch.cuda.memory_stats()["requested_bytes.all.current"]}


@feature("_set_allocator_settings: roundup_power2_divisions changes memory_allocated")
def roundup_at_run_time():
    import torch
    torch.cuda.memory._set_allocator_settings("roundup_power2_divisions:2")
    x = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    return {"allocated": torch.cuda.memory_allocated(), "kept": x.numel()}


@feature("_set_allocator_settings: backend:native")
def native_at_run_time():
    import torch
    torch.zeros(1, device="cuda")
    return {"error": refusal(torch.cuda.memory._set_allocator_settings, "backend:native")}


@feature("_set_allocator_settings: keys of pinned memory")
def pinned_settings_at_run_time():
    import torch
    torch.zeros(1, device="cuda")
    torch.cuda.memory._set_allocator_settings("pinned_use_cuda_host_register:True")
    x = torch.ones(1000, pin_memory=True)
    return {"sum": x.cuda().sum().item(), "pinned": x.is_pinned()}


@feature("torch._C._accelerator_setAllocatorSettings", since=(2, 9))
def accelerator_settings():
    import torch
    need_name(torch._C, "_accelerator_setAllocatorSettings")("garbage_collection_threshold:0.7")
    return {"sum": megabytes(1).sum().item()}


@feature("expandable segments in a snapshot")
def expandable_snapshot():
    import torch
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    x = megabytes(30)
    segments = torch.cuda.memory._snapshot()["segments"]
    return {"expandable": any(segment["is_expandable"] for segment in segments),
            "kept": x.numel()}


@feature("the environment's settings stay readable by the program",
         settings={CONF: "max_split_size_mb:64"}, long=True)
def settings_in_the_environment():
    import os
    import subprocess
    import sys
    child = subprocess.run([sys.executable, "-c", f"import os; print(os.environ.get({CONF!r}))"],
                           capture_output=True, text=True, check=True)
    return {"here": os.environ.get(CONF), "child": child.stdout.strip()}


@feature("settings made by the script before PyTorch is imported, in a process of its own")
def settings_before_import():
    import os
    import subprocess
    import sys
    program = (f"import os; os.environ[{CONF!r}] = 'expandable_segments:True'\n"
               "import torch; x = torch.ones(1 << 20, device='cuda')\n"
               "print(int(x.sum()), torch.cuda.memory_allocated())")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env=os.environ)
    return {"output": done.stdout.strip(), "exit": done.returncode}


@feature("PYTORCH_NO_CUDA_MEMORY_CACHING: no cache",
         settings={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, long=True)
def settings_no_cache():
    import torch
    x = megabytes(4)
    total = x.sum().item()
    del x
    return {"sum": total, "allocated": torch.cuda.memory_allocated()}


@feature("CUDA_LAUNCH_BLOCKING: every launch waits", long=True,
         settings={"CUDA_LAUNCH_BLOCKING": "1"})
def settings_blocking():
    import torch
    x = megabytes(4)
    return {"sum": x.sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("CUBLAS_WORKSPACE_CONFIG and deterministic algorithms",
         settings={"CUBLAS_WORKSPACE_CONFIG": ":16:8"}, long=True)
def settings_deterministic():
    import torch
    torch.use_deterministic_algorithms(True)
    x = torch.ones(64, 64, device="cuda")
    y = x @ x
    torch.cuda.synchronize()
    filled = torch.empty(3, device="cuda").isnan().all().item()
    return {"shape": tuple(y.shape), "allocated": torch.cuda.memory_allocated(), "nan": filled}
