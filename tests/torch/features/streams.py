"""Streams, events, and memory that several streams use."""
from features import MIB, RawTensor, feature, megabytes, need_name, raw_memory, runtime


@feature("record_stream: memory waits for the other stream")
def record_stream():
    import torch
    stream = torch.cuda.Stream()
    x = torch.full((1000,), 2, device="cuda")
    with torch.cuda.stream(stream):
        stream.wait_stream(torch.cuda.default_stream())
        torch.cuda._sleep(100_000)
        y = x * 3
    x.record_stream(stream)
    del x
    torch.cuda.synchronize()
    return {"sum": y.sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("record_stream of the stream that the tensor belongs to")
def record_own_stream():
    import torch
    x = megabytes(2)
    x.record_stream(torch.cuda.current_stream())
    del x
    torch.cuda.synchronize()
    return {"allocated": torch.cuda.memory_allocated()}


@feature("record_stream of memory that another library allocated")
def record_stream_of_foreign():
    import torch
    x = torch.as_tensor(RawTensor(raw_memory(MIB), MIB), device="cuda")
    x.fill_(3)
    x.record_stream(torch.cuda.Stream())
    return {"sum": x.sum().item()}


@feature("record_stream of a view, and of a view through another library")
def record_stream_of_views():
    import torch
    stream = torch.cuda.Stream()
    x = megabytes(2)
    x[100:].record_stream(stream)
    y = torch.as_tensor(RawTensor(x.data_ptr(), 1000), device="cuda")
    y.record_stream(stream)
    z = torch.from_dlpack(x)
    z.record_stream(stream)
    return {"sums": [y.sum().item(), z.sum().item() // MIB]}


@feature("tensors made on one stream and freed on another")
def freed_elsewhere():
    import torch
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.full((1000,), 4, device="cuda")
    torch.cuda.current_stream().wait_stream(stream)
    y = x + 1
    del x
    torch.cuda.synchronize()
    return {"sum": y.sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("a block of one stream is not given to another")
def blocks_of_streams():
    import torch
    stream = torch.cuda.Stream()
    x = megabytes(4)
    address = x.data_ptr()
    del x
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1000)
        y = megabytes(4)
    z = megabytes(4)
    return {"own": z.data_ptr() != y.data_ptr(), "kept": [address != 0, len(y)]}


@feature("many streams, each with its own tensors")
def many_streams():
    import torch
    sums = []
    for i in range(40):
        with torch.cuda.stream(torch.cuda.Stream()):
            sums.append(torch.full((100,), i, device="cuda").sum())
    torch.cuda.synchronize()
    return {"total": sum(x.item() for x in sums), "allocated": torch.cuda.memory_allocated()}


@feature("streams with priorities")
def stream_priorities():
    import torch
    low, high = torch.cuda.Stream.priority_range()
    with torch.cuda.stream(torch.cuda.Stream(priority=high)):
        x = torch.full((100,), 3, device="cuda")
    torch.cuda.synchronize()
    return {"range": (low, high), "sum": x.sum().item()}


@feature("ExternalStream: a stream of another library")
def external_stream():
    import ctypes

    import torch
    torch.zeros(1, device="cuda")
    handle = ctypes.c_void_p()
    error = runtime().cudaStreamCreate(ctypes.byref(handle))
    stream = torch.cuda.ExternalStream(handle.value)
    with torch.cuda.stream(stream):
        x = torch.full((100,), 3, device="cuda")
        total = x.sum().item()
    x.record_stream(stream)
    del x
    torch.cuda.synchronize()
    return {"error": error, "sum": total, "allocated": torch.cuda.memory_allocated()}


@feature("a foreign stream is destroyed before what was made on it is freed")
def stream_destroyed_first():
    import ctypes

    import torch
    torch.zeros(1, device="cuda")
    handle = ctypes.c_void_p()
    runtime().cudaStreamCreate(ctypes.byref(handle))
    with torch.cuda.stream(torch.cuda.ExternalStream(handle.value)):
        x = megabytes(4)
    torch.cuda.synchronize()
    error = runtime().cudaStreamDestroy(handle)
    del x
    y = megabytes(4)
    return {"error": error, "allocated": torch.cuda.memory_allocated(), "kept": y.numel()}


@feature("GreenContext: a part of the device", since=(2, 9))
def green_context():
    import torch
    torch.zeros(1, device="cuda")
    context = need_name(need_name(torch.cuda, "green_contexts"), "GreenContext").create(
        num_sms=8, device_id=0)
    context.set_context()
    x = megabytes(2)
    total = x.sum().item()
    context.pop_context()
    return {"sum": total, "allocated": torch.cuda.memory_allocated()}


@feature("events: record, wait, query, elapsed_time")
def events():
    import torch
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    x = megabytes(4)
    end.record()
    end.synchronize()
    return {"time": start.elapsed_time(end) >= 0, "query": end.query(), "kept": x.numel()}


@feature("events of other processes: ipc_handle")
def event_ipc():
    import torch
    event = torch.cuda.Event(enable_timing=False, interprocess=True)
    event.record()
    return {"handle": len(event.ipc_handle())}


@feature("a producer and a consumer on two streams with events")
def producer_and_consumer():
    import torch
    producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
    total = torch.zeros((), dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    for i in range(20):
        with torch.cuda.stream(producer):
            x = torch.full((1000,), i, device="cuda")
            ready = producer.record_event()
        with torch.cuda.stream(consumer):
            consumer.wait_event(ready)
            total += x.sum()
            x.record_stream(consumer)
        del x
    torch.cuda.synchronize()
    return {"total": total.item()}


@feature("default_stream, current_stream and set_stream")
def current_streams():
    import torch
    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)
    same = torch.cuda.current_stream() == stream
    x = torch.full((10,), 1, device="cuda")
    torch.cuda.set_stream(torch.cuda.default_stream())
    torch.cuda.synchronize()
    return {"same": same, "sum": x.sum().item(),
            "default": torch.cuda.default_stream().cuda_stream}


@feature("torch.Stream and torch.Event, the kinds of any accelerator", since=(2, 7))
def streams_of_any_kind():
    import torch
    stream = torch.Stream(device="cuda")
    with stream:
        x = torch.full((10,), 1, device="cuda")
    event = stream.record_event()
    event.synchronize()
    return {"sum": x.sum().item(), "query": event.query()}


@feature("threads that allocate and free at the same time")
def threads():
    import threading

    import torch
    torch.zeros(1, device="cuda")
    sums = [0] * 4

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(50):
                x = torch.full((1000 + i,), number, dtype=torch.int32, device="cuda")
                sums[number] += x[0].item()
    started = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    torch.cuda.synchronize()
    return {"sums": sums, "allocated": torch.cuda.memory_allocated(),
            "count": torch.cuda.memory_stats()["allocation.all.current"]}


@feature("a tensor made by a thread that has ended")
def thread_has_ended():
    import threading

    import torch
    kept = []
    thread = threading.Thread(target=lambda: kept.append(megabytes(2)))
    thread.start()
    thread.join()
    total = kept[0].sum().item()
    kept.clear()
    return {"sum": total, "allocated": torch.cuda.memory_allocated()}


@feature("backward on threads of autograd, with streams of forward")
def backward_on_streams():
    import torch
    x = torch.ones(1000, device="cuda", requires_grad=True)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = (x * 2).sum()
    torch.cuda.current_stream().wait_stream(stream)
    y.backward()
    torch.cuda.synchronize()
    return {"gradient": x.grad.sum().item()}


@feature("prefetch of batches on a side stream from pinned memory")
def prefetch():
    import torch
    side, total = torch.cuda.Stream(), 0
    batches = [torch.full((1000,), i, dtype=torch.int64).pin_memory() for i in range(5)]
    for batch in batches:
        with torch.cuda.stream(side):
            x = batch.cuda(non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(torch.cuda.current_stream())
        total += x.sum().item()
    return {"total": total}


@feature("cudaStreamPerThread as an external stream")
def stream_per_thread():
    import torch
    torch.zeros(1, device="cuda")
    with torch.cuda.stream(torch.cuda.ExternalStream(2)):
        x = torch.full((100,), 3, device="cuda")
    torch.cuda.synchronize()
    return {"sum": x.sum().item(), "allocated": torch.cuda.memory_allocated()}


@feature("set_sync_debug_mode reports what waits")
def sync_debug_mode():
    import torch
    x = torch.ones(10, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        x.sum().item()
        said = None
    except RuntimeError as error:
        said = str(error).partition("\n")[0]
    torch.cuda.set_sync_debug_mode("default")
    return {"said": said, "sum": x.sum().item()}
