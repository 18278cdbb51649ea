"""Files, other processes, the end of the interpreter, and tools that watch memory."""
from features import Absent, MIB, feature, megabytes, need, refusal


@feature("torch.save and torch.load with map_location")
def save_and_load():
    import torch
    x = torch.arange(1000, device="cuda")
    torch.save({"x": x}, "saved.pt")
    del x
    y = torch.load("saved.pt", map_location="cuda:0")["x"]
    return {"sum": y.sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("torch.load with mmap, then to the device")
def load_mapped():
    import torch
    torch.save(torch.arange(1000), "saved.pt")
    y = torch.load("saved.pt", mmap=True).cuda()
    return {"sum": y.sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("a module's state: state_dict, load_state_dict with assign")
def state_dicts():
    import torch
    model, other = torch.nn.Linear(64, 64).cuda(), torch.nn.Linear(64, 64)
    other.load_state_dict(model.state_dict(), assign=True)
    return {"device": other.weight.device.type, "allocated": torch.cuda.memory_allocated()}


@feature("copy.deepcopy and pickle of tensors on the device")
def deep_copies():
    import copy
    import pickle

    import torch
    x = torch.arange(100, device="cuda")
    y = copy.deepcopy(x)
    z = pickle.loads(pickle.dumps(x))
    return {"sums": [y.sum().item(), z.sum().item()], "allocated": torch.cuda.memory_allocated()}


@feature("safetensors onto the device")
def safetensors_file():
    import torch
    safetensors = need("safetensors.torch")
    safetensors.save_file({"x": torch.arange(1000, device="cuda")}, "saved.safetensors")
    found = safetensors.load_file("saved.safetensors", device="cuda:0")
    return {"sum": found["x"].sum().item()}


class Rows:
    """A data set of 16 rows."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        import torch
        return torch.full((10,), index)


def loaded(**more):
    import torch
    loader = torch.utils.data.DataLoader(Rows(), batch_size=4, pin_memory=True, **more)
    return {"sum": sum(batch.cuda(non_blocking=True).sum().item() for batch in loader),
            "allocated": torch.cuda.memory_allocated()}


@feature("DataLoader with a thread that pins")
def loader():
    return loaded()


@feature("DataLoader with workers that are forked, after CUDA was used")
def loader_fork():
    x = megabytes(1)
    return {**loaded(num_workers=2, multiprocessing_context="fork"), "kept": x.numel()}


@feature("DataLoader with workers that are spawned")
def loader_spawn():
    return loaded(num_workers=1, multiprocessing_context="spawn")


@feature("fork after CUDA was used: the child is refused, the parent goes on")
def fork_is_refused():
    import os

    import torch
    x = megabytes(2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, (refusal(torch.ones, 1, device="cuda") or "none").encode())
        os._exit(0)
    os.waitpid(child, 0)
    return {"child": os.read(read, 1000).decode(), "sum": x.sum().item()}


@feature("fork before CUDA is used: both use it")
def fork_before_use():
    import os

    import torch
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(torch.ones(100, device="cuda").sum().item()).encode())
        os._exit(0)
    x = torch.ones(100, device="cuda")
    os.waitpid(child, 0)
    return {"child": os.read(read, 100).decode(), "sum": x.sum().item()}


@feature("a program in a new process, whose output is read")
def new_process():
    import subprocess
    import sys
    program = "import torch; x = torch.ones(100, device='cuda'); print(int(x.sum()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return {"output": done.stdout.strip(), "exit": done.returncode}


@feature("a process that ends by os._exit with memory in use")
def sudden_end():
    import subprocess
    import sys
    program = ("import os, torch; x = torch.ones(100, device='cuda'); torch.cuda.synchronize(); "
               "os._exit(7)")
    return {"exit": subprocess.run([sys.executable, "-c", program],
                                   capture_output=True).returncode}


@feature("a process that ends by a signal with memory in use")
def killed():
    import subprocess
    import sys
    program = ("import os, signal, torch; x = torch.ones(100, device='cuda'); "
               "torch.cuda.synchronize(); os.kill(os.getpid(), signal.SIGTERM)")
    return {"exit": subprocess.run([sys.executable, "-c", program],
                                   capture_output=True).returncode}


@feature("the interpreter ends with tensors of modules and of cycles", ends=True)
def end_with_tensors():
    import builtins

    import torch
    builtins.kept = [megabytes(2)]
    builtins.kept.append(builtins.kept)
    torch.kept = torch.ones(10, device="cuda")
    return {"allocated": torch.cuda.memory_allocated()}


@feature("the interpreter ends with graphs and streams", ends=True)
def end_with_graphs():
    import builtins

    import torch
    x = torch.ones(10, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    builtins.kept = [graph, y, torch.cuda.Stream(), torch.cuda.Event()]
    return {"sum": y.sum().item()}


@feature("the interpreter ends with a MemPool in use", ends=True)
def end_with_pool():
    import builtins

    import torch
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = megabytes(2)
    builtins.kept = [pool, x]
    return {"allocated": torch.cuda.memory_allocated()}


@feature("the interpreter ends with a thread that allocates", ends=True)
def end_with_thread():
    import threading

    import torch
    torch.zeros(1, device="cuda")

    def work():
        for _ in range(200):
            torch.empty(1000, device="cuda")
    threading.Thread(target=work).start()
    return {"started": True}


@feature("the interpreter ends after an error in the middle of a capture", ends=True)
def end_after_capture():
    import builtins

    import torch
    x = torch.ones(10, device="cuda")
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        y = x + 1
        graph.capture_end()
    builtins.kept = [graph]
    return {"shape": tuple(y.shape)}


@feature("the interpreter ends after training, with history on", ends=True)
def end_with_history():
    import torch
    torch.cuda.memory._record_memory_history()
    model = torch.nn.Linear(8, 8).cuda()
    model(torch.ones(2, 8, device="cuda")).sum().backward()
    return {"gradient": tuple(model.weight.grad.shape)}


@feature("atexit functions that read figures and free memory", ends=True)
def end_with_exit_functions():
    import atexit

    import torch
    kept = [megabytes(2)]

    def last():
        kept.clear()
        torch.cuda.empty_cache()
        if torch.cuda.memory_allocated() != 0:
            raise SystemExit(5)
    atexit.register(last)
    return {"kept": len(kept)}


@feature("MemTracker of torch.distributed._tools")
def mem_tracker():
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker
    model = torch.nn.Linear(64, 64).cuda()
    tracker = MemTracker()
    tracker.track_external(model)
    with tracker:
        model(torch.ones(8, 64, device="cuda")).sum().backward()
    found = {str(key): value for device in tracker.get_tracker_snapshot("peak").values()
             for key, value in device.items()}
    return {"total": found.get("Total")}


@feature("FakeTensorMode: nothing is allocated")
def fake_tensors():
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    torch.zeros(1, device="cuda")
    before = torch.cuda.memory_allocated()
    with FakeTensorMode():
        x = torch.empty(1 << 40, device="cuda")
        y = x + 1
    return {"shape": tuple(y.shape), "more": torch.cuda.memory_allocated() - before}


@feature("TorchDispatchMode that counts operators and their memory")
def dispatch_mode():
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            before = torch.cuda.memory_allocated()
            result = func(*args, **(kwargs or {}))
            seen.append((str(func), torch.cuda.memory_allocated() - before))
            return result
    with Watch():
        x = torch.ones(1000, device="cuda")
        x + x
    return {"seen": seen}


@feature("functions of torch.cuda that are replaced by the program's own")
def replaced_functions():
    import torch
    real, seen = torch.cuda.memory_allocated, []

    def mine(*arguments):
        seen.append(real(*arguments))
        return seen[-1]
    torch.cuda.memory_allocated = mine
    x = megabytes(1)
    torch.cuda.memory_allocated()
    return {"seen": seen, "kept": x.numel()}


@feature("hooks of modules that read figures")
def module_hooks():
    import torch
    seen = []
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda()
    for layer in model:
        layer.register_forward_hook(lambda *_: seen.append(torch.cuda.memory_allocated()))
    with torch.no_grad():
        model(torch.ones(256, 64, device="cuda"))
    return {"seen": seen}


@feature("PyTorch's CUDA sanitizer finds a race of two streams",
         settings={"TORCH_CUDA_SANITIZER": "1"})
def cuda_sanitizer():
    import torch
    stream = torch.cuda.Stream()
    x = torch.ones(1000, device="cuda")

    def race():
        with torch.cuda.stream(stream):
            x.add_(1)
    return {"found": (refusal(race) or "none").partition(":")[0]}


@feature("torch.cuda._gpu_trace: callbacks for memory that is made and freed")
def gpu_trace():
    import torch
    from torch.cuda import _gpu_trace as trace
    seen = []
    torch._C._activate_gpu_trace()
    trace.register_callback_for_memory_allocation(lambda address: seen.append("made"))
    trace.register_callback_for_memory_deallocation(lambda address: seen.append("freed"))
    x = megabytes(1)
    del x
    return {"seen": seen}


@feature("a C++ extension that asks c10::cuda::CUDACachingAllocator")
def cpp_extension():
    import os
    import shutil
    import subprocess
    import sysconfig

    import torch
    if not shutil.which("c++"):
        raise Absent("no C++ compiler")
    home = os.path.dirname(torch.__file__)
    with open("counted.cpp", "w") as file:
        file.write("namespace c10 { enum class DeviceType : signed char { CUDA = 1 };\n"
                   "struct Allocator; Allocator *GetAllocator(const DeviceType &); }\n"
                   "extern \"C\" void *ask(void) "
                   "{ return c10::GetAllocator(c10::DeviceType::CUDA); }\n")
    done = subprocess.run(["c++", "-shared", "-fPIC", "-o", "./counted.so", "counted.cpp",
                           f"-L{home}/lib", "-lc10"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Absent(f"it cannot be compiled: {sysconfig.get_platform()}")
    import ctypes
    torch.zeros(1, device="cuda")
    library = ctypes.CDLL("./counted.so")
    library.ask.restype = ctypes.c_void_p
    return {"found": bool(library.ask()), "constant": library.ask() == library.ask()}


@feature("a long loop: memory does not grow")
def no_growth():
    import torch
    sizes = set()
    for turn in range(50):
        x = torch.empty((turn % 7 + 1) * MIB, dtype=torch.uint8, device="cuda")
        del x
        sizes.add(torch.cuda.memory_allocated())
    return {"sizes": sorted(sizes), "small": torch.cuda.memory_reserved() <= 64 * MIB}
