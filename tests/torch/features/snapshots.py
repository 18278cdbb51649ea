"""Snapshots, the history of allocations, and what is told of it."""
from features import HUGE, MIB, feature, megabytes, need_name, refusal


def history(**how):
    import torch
    torch.cuda.memory._record_memory_history(**how)


def blocks(snapshot):
    """How many blocks are in use, and their bytes."""
    sizes = [block["size"] for segment in snapshot["segments"] for block in segment["blocks"]
             if block["state"] == "active_allocated"]
    return len(sizes), sum(sizes)


def events(snapshot, *kinds):
    """(what, size) of each event of these kinds."""
    return [(event["action"], event["size"]) for trace in snapshot["device_traces"]
            for event in trace if event["action"] in kinds]


@feature("torch.cuda.memory._snapshot: blocks in use")
def snapshot_blocks():
    import torch
    kept = [megabytes(size) for size in (1, 4, 30)]
    del kept[1]
    snapshot = torch.cuda.memory._snapshot()
    return {"blocks": blocks(snapshot), "keys": [key for key in ("segments", "device_traces")
                                                 if key in snapshot], "kept": len(kept)}


@feature("_snapshot: addresses of tensors are in it")
def snapshot_addresses():
    import torch
    kept = [megabytes(size) for size in (1, 3, 17)]
    found = {block.get("address") for segment in torch.cuda.memory._snapshot()["segments"]
             for block in segment["blocks"]}
    return {"found": [x.data_ptr() in found for x in kept]}


@feature("_snapshot: segments")
def snapshot_segments():
    import torch
    kept = [megabytes(size) for size in (1, 4, 30)]
    segments = torch.cuda.memory._snapshot()["segments"]
    return {"reserved segments": sorted((segment["segment_type"], segment["total_size"],
                                         segment["allocated_size"]) for segment in segments),
            "sum": sum(segment["allocated_size"] for segment in segments), "kept": len(kept)}


@feature("torch.cuda.memory_snapshot")
def memory_snapshot():
    import torch
    kept = megabytes(8)
    segments = torch.cuda.memory_snapshot()
    return {"allocated": sum(segment["allocated_size"] for segment in segments),
            "keys": sorted(segments[0]), "kept": kept.numel()}


@feature("_record_memory_history, then allocations and frees in the trace")
def history_trace():
    import torch
    history()
    for size in (2, 3, 5):
        x = megabytes(size)
        del x
    return {"events": events(torch.cuda.memory._snapshot(), "alloc", "free_completed")}


@feature("_record_memory_history: segments in the trace")
def history_segments():
    import torch
    history()
    x = megabytes(40)
    del x
    torch.cuda.empty_cache()
    return {"segment events": events(torch.cuda.memory._snapshot(), "segment_alloc",
                                     "segment_free")}


@feature("_record_memory_history with Python's stacks")
def history_python_stacks():
    import torch
    history(stacks="python")

    def here_it_is_made():
        return megabytes(2)
    x = here_it_is_made()
    names = [{frame["name"] for frame in event["frames"]}
             for trace in torch.cuda.memory._snapshot()["device_traces"] for event in trace
             if event["action"] == "alloc"]
    return {"found": [("here_it_is_made" in found, "megabytes" in found) for found in names],
            "kept": x.numel()}


@feature("_record_memory_history with all stacks: names of C++ functions")
def history_all_stacks():
    import torch
    history(stacks="all", context="alloc")
    x = megabytes(2)
    frames = [frame for segment in torch.cuda.memory._snapshot()["segments"]
              for block in segment["blocks"] for frame in block.get("frames", [])]
    return {"python": any(frame["name"] == "megabytes" for frame in frames),
            "native": any("at::" in frame["name"] for frame in frames), "kept": x.numel()}


@feature("_record_memory_history(enabled=\"state\", context=\"state\"): frames of blocks in use")
def history_state():
    import torch
    history(enabled="state", context="state", stacks="python")
    x = megabytes(2)
    snapshot = torch.cuda.memory._snapshot()
    found = [bool(block.get("frames")) for segment in snapshot["segments"]
             for block in segment["blocks"] if block["state"] == "active_allocated"]
    return {"frames": found, "traces": sum(map(len, snapshot["device_traces"])),
            "kept": x.numel()}


@feature("_record_memory_history(context=None): events without frames")
def history_without_context():
    import torch
    history(context=None)
    x = megabytes(2)
    traces = torch.cuda.memory._snapshot()["device_traces"]
    return {"frames": [bool(event.get("frames")) for trace in traces for event in trace
                       if event["action"] == "alloc"], "kept": x.numel()}


@feature("_record_memory_history(max_entries=4) keeps the last ones")
def history_max_entries():
    import torch
    history(max_entries=4)
    for _ in range(10):
        x = megabytes(2)
        del x
    traces = torch.cuda.memory._snapshot()["device_traces"]
    return {"entries": sum(map(len, traces))}


@feature("_record_memory_history(enabled=None), before and after it was on")
def history_off():
    import torch
    history(enabled=None)
    history()
    x = megabytes(2)
    history(enabled=None)
    y = megabytes(3)
    traces = torch.cuda.memory._snapshot()["device_traces"]
    return {"entries": sum(map(len, traces)), "kept": x.numel() + y.numel()}


@feature("_record_memory_history with the arguments of its older form")
def history_legacy():
    import torch
    torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=100,
                                             trace_alloc_record_context=True)
    x = megabytes(2)
    return {"events": events(torch.cuda.memory._snapshot(), "alloc"), "kept": x.numel()}


@feature("_record_memory_history(clear_history=True)", since=(2, 7))
def history_cleared():
    import torch
    history()
    x = megabytes(2)
    history(clear_history=True)
    y = megabytes(3)
    return {"events": events(torch.cuda.memory._snapshot(), "alloc"), "kept": [len(x), len(y)]}


@feature("torch._C._cuda_isHistoryEnabled")
def history_enabled():
    import torch
    ask = need_name(torch._C, "_cuda_isHistoryEnabled")
    torch.zeros(1, device="cuda")
    before = ask()
    history()
    return {"before": before, "after": ask()}


@feature("_dump_snapshot writes a file that pickle reads")
def snapshot_file():
    import pickle

    import torch
    history()
    x = megabytes(6)
    torch.cuda.memory._dump_snapshot("snapshot.pickle")
    with open("snapshot.pickle", "rb") as file:
        snapshot = pickle.load(file)
    return {"blocks": blocks(snapshot), "events": events(snapshot, "alloc"), "kept": x.numel()}


@feature("torch.cuda._memory_viz: text of segments and of the trace")
def memory_viz():
    import torch
    from torch.cuda import _memory_viz
    history()
    x = megabytes(6)
    snapshot = torch.cuda.memory._snapshot()
    pages = [_memory_viz.trace_plot(snapshot), _memory_viz.segment_plot(snapshot)]
    return {"segments": "6.0MiB" in _memory_viz.segsum(snapshot),
            "trace": _memory_viz.trace(snapshot).count("alloc"),
            "pages": [len(page) > 1000 for page in pages], "kept": x.numel()}


@feature("torch.cuda._memory_viz: frames of an event as text")
def memory_viz_frames():
    import torch
    from torch.cuda import _memory_viz
    history()
    x = megabytes(6)
    snapshot = torch.cuda.memory._snapshot()
    return {"frames": len(_memory_viz._frames_fmt(
        snapshot["device_traces"][0][0]["frames"], full_filename=False)) > 0, "kept": x.numel()}


@feature("_set_memory_metadata and _get_memory_metadata", since=(2, 9))
def memory_metadata():
    import torch
    history()
    torch.cuda.memory._set_memory_metadata("step 1")
    x = megabytes(2)
    read = torch.cuda.memory._get_memory_metadata()
    torch.cuda.memory._set_memory_metadata("")
    marks = [event.get("user_metadata") for trace in torch.cuda.memory._snapshot()["device_traces"]
             for event in trace if event["action"] == "alloc"]
    return {"read": read, "marks": marks, "kept": x.numel()}


@feature("record_function in the history: annotations", since=(2, 8))
def history_annotations():
    import torch
    history(global_record_annotations=True)
    with torch.profiler.record_function("a named part"):
        x = megabytes(2)
    found = torch.cuda.memory._snapshot().get("external_annotations", [])
    return {"names": sorted({note.get("name") for note in found}), "kept": x.numel()}


@feature("_snapshot: settings of the allocator")
def snapshot_settings():
    import torch
    x = megabytes(1)
    settings = torch.cuda.memory._snapshot()["allocator_settings"]
    return {"keys": sorted(settings), "expandable": settings.get("expandable_segments"),
            "split": settings.get("max_split_size"), "kept": x.numel()}


@feature("an observer of out of memory")
def out_of_memory_observer():
    import torch
    torch.zeros(1, device="cuda")
    seen = []
    torch._C._cuda_attach_out_of_memory_observer(
        lambda device, asked, total, free: seen.append((device, asked, total > 0, free >= 0)))
    error = refusal(torch.empty, HUGE, dtype=torch.uint8, device="cuda")
    return {"seen": seen, "error": error is not None}


@feature("history, observer and dump on out of memory, as trainers do it")
def snapshot_on_out_of_memory():
    import pickle

    import torch
    history(max_entries=100)
    x = megabytes(16)

    def observer(device, asked, total, free):
        torch.cuda.memory._dump_snapshot(f"oom_{device}.pickle")
    torch._C._cuda_attach_out_of_memory_observer(observer)
    refusal(torch.empty, HUGE, dtype=torch.uint8, device="cuda")
    with open("oom_0.pickle", "rb") as file:
        snapshot = pickle.load(file)
    return {"blocks": blocks(snapshot), "ooms": events(snapshot, "oom") != [], "kept": x.numel()}


@feature("torch.utils.viz._cycles.warn_tensor_cycles")
def tensor_cycles():
    import gc

    from torch.utils.viz._cycles import warn_tensor_cycles
    stop = warn_tensor_cycles()

    class Node:
        pass
    node = Node()
    node.itself, node.tensor = node, megabytes(1)
    del node
    stop()
    return {"collected": gc.collect() >= 0}


@feature("history while a graph is captured")
def history_of_capture():
    import torch
    history()
    x = megabytes(2)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    return {"events": events(torch.cuda.memory._snapshot(), "alloc"), "sum": y.sum().item()}


@feature("history of a training step: how many blocks each line made")
def history_of_training():
    import collections

    import torch
    torch.manual_seed(1)
    history(stacks="python")
    model = torch.nn.Linear(512, 512).cuda()
    model(torch.ones(64, 512, device="cuda")).sum().backward()
    traces = torch.cuda.memory._snapshot()["device_traces"]
    found = collections.Counter(event["action"] for trace in traces for event in trace
                                if event["action"] in ("alloc", "free_requested"))
    return dict(found)


@feature("_snapshot: keys of a segment and of a block")
def snapshot_keys():
    import torch
    x = megabytes(2)
    segment = torch.cuda.memory._snapshot()["segments"][0]
    return {"segment": sorted(segment), "block": sorted(segment["blocks"][0]), "kept": x.numel()}


@feature("_snapshot with free memory")
def snapshot_of_free_memory():
    import torch
    kept, freed = megabytes(8), megabytes(4)
    del freed
    segments = torch.cuda.memory._snapshot()["segments"]
    states = {block["state"] for segment in segments for block in segment["blocks"]}
    return {"states": sorted(states), "kept": kept.numel(),
            "adds up": sum(segment["total_size"] for segment in segments) ==
            torch.cuda.memory_reserved()}


@feature("_snapshot with blocks that wait for another stream")
def snapshot_of_waiting_blocks():
    import torch
    stream = torch.cuda.Stream()
    x = megabytes(30)
    x.record_stream(stream)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1000)
        y = x + 1
    del x
    states = {block["state"] for segment in torch.cuda.memory._snapshot()["segments"]
              for block in segment["blocks"]}
    torch.cuda.synchronize()
    return {"states": sorted(states & {"active_allocated"}), "sum": y[:9].sum().item()}
