"""What PyTorch's profiler sees of memory."""
from features import MIB, feature, megabytes


def profiled(**more):
    """A profile of two operators."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    a = torch.ones(4 * MIB, device="cuda")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, **more) as found:
        b = a + 1
        c = torch.relu(b)
        del b
    return found, c


@feature("profiler: device memory by operator")
def profiler_memory():
    found, kept = profiled()
    return {**{event.key: event.self_device_memory_usage for event in found.key_averages()
               if event.self_device_memory_usage}, "kept": kept.numel()}


@feature("profiler: memory events")
def profiler_memory_events():
    found, kept = profiled()
    sizes = [event.self_device_memory_usage for event in found.events()
             if event.name == "[memory]" or event.self_device_memory_usage]
    return {"sizes": sorted(sizes), "kept": kept.numel()}


@feature("profiler: its table sorted by device memory")
def profiler_table():
    found, kept = profiled()
    text = found.key_averages().table(sort_by="self_cuda_memory_usage", row_limit=5)
    rows = [line.split()[0] for line in text.splitlines() if line.strip().startswith("aten::")]
    return {"first": rows[:1], "memory": "16.00 MB" in text, "kept": kept.numel()}


@feature("profiler: export_memory_timeline")
def profiler_timeline():
    import json
    import warnings
    warnings.simplefilter("ignore")
    found, kept = profiled(record_shapes=True, with_stack=True)
    found.export_memory_timeline("timeline.raw.json", device="cuda:0")
    with open("timeline.raw.json") as file:
        times, sizes = json.load(file)
    return {"points": len(times), "most": max(map(sum, sizes)), "kept": kept.numel()}


@feature("profiler: _memory_profile")
def profiler_categories():
    found, kept = profiled(record_shapes=True, with_stack=True)
    profile = found._memory_profile()
    return {"sizes": sorted(size for _, action, _, size in profile.timeline),
            "kept": kept.numel()}


@feature("profiler: Chrome's trace has memory events")
def profiler_chrome_trace():
    import json
    found, kept = profiled()
    found.export_chrome_trace("trace.json")
    with open("trace.json") as file:
        text = json.load(file)
    sizes = [event["args"]["Bytes"] for event in text["traceEvents"]
             if event.get("name") == "[memory]" and event["args"].get("Device Type") == 1]
    return {"bytes": sizes, "kept": kept.numel()}


@feature("profiler: tensorboard_trace_handler with a schedule")
def profiler_schedule():
    import os

    import torch
    from torch.profiler import profile, schedule, tensorboard_trace_handler
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True,
                 schedule=schedule(wait=1, warmup=1, active=2),
                 on_trace_ready=tensorboard_trace_handler("log")) as found:
        for _ in range(5):
            x = megabytes(1)
            found.step()
    return {"files": len(os.listdir("log")), "kept": x.numel()}


@feature("torch.autograd.profiler.profile with memory")
def autograd_profiler():
    import torch
    with torch.autograd.profiler.profile(profile_memory=True, use_kineto=True) as found:
        x = megabytes(5)
    return {"most": max(event.self_device_memory_usage for event in found.key_averages()),
            "kept": x.numel()}


@feature("torch.autograd.profiler.emit_nvtx and torch.cuda.nvtx")
def nvtx_ranges():
    import torch
    with torch.autograd.profiler.emit_nvtx():
        torch.cuda.nvtx.range_push("part")
        x = megabytes(1)
        torch.cuda.nvtx.range_pop()
    return {"sum": x.sum().item()}


@feature("execution traces: torch.profiler.ExecutionTraceObserver")
def execution_trace():
    import json

    from torch.profiler import ExecutionTraceObserver
    observer = ExecutionTraceObserver().register_callback("trace.json")
    observer.start()
    x = megabytes(1)
    observer.stop()
    observer.unregister_callback()
    with open("trace.json") as file:
        names = {node["name"] for node in json.load(file)["nodes"]}
    return {"found": "aten::ones" in names, "kept": x.numel()}
