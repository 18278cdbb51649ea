#!/usr/bin/env python3
"""Replays traces with PyTorch's own caching allocator, on simulated devices of many sizes.

Reads requests as JSON lines: {"memory": bytes, "trace": path, "steps": n}. Answers each with one:
whether it ran, PyTorch's peaks, how often it emptied its cache to go on, and the driver calls of
the last step. PyTorch is imported once; each request runs in a child of its own, before which no
CUDA call was made, so that the device is a fresh one. Allocation and free go through PyTorch's
interface for other libraries, caching_allocator_alloc and _delete.
"""
import ctypes
import json
import os
import sys

import torch

import traces

COUNTED = ["cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap",
           "cuMemRelease", "cuEventRecord", "cuEventQuery", "cuEventSynchronize",
           "cuStreamWaitEvent", "cuCtxSynchronize", "cuStreamSynchronize"]


CHUNKED = ["cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease"]


def counts():
    driver = ctypes.CDLL("libcuda.so.1")
    driver.spillway_sim_calls.restype = ctypes.c_ulonglong
    driver.spillway_sim_chunks.restype = ctypes.c_ulonglong
    found = {name: driver.spillway_sim_calls(name.encode()) for name in COUNTED}
    for name in CHUNKED:
        covered = ctypes.c_ulonglong()
        chunks = driver.spillway_sim_chunks(name.encode(), ctypes.byref(covered))
        found.update({name + " chunks": chunks, name + " bytes": covered.value})
    return found


def replay(events, steps):
    allocate, free = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete
    blocks, before = {}, counts()
    stream = torch.cuda.current_stream(0)
    for _ in range(steps):
        before = counts()
        for row, size in events:
            if size:
                blocks[row] = allocate(size, 0, stream)
            else:
                free(blocks.pop(row))
    after = counts()
    stats = torch.cuda.memory_stats()
    return {"ran": True, "live_peak": stats["allocated_bytes.all.peak"],
            "committed_peak": stats["reserved_bytes.all.peak"],
            "flushes": stats["num_alloc_retries"],
            "calls": {name: after[name] - before[name] for name in after}}


def answer(request, out):
    os.environ["SPILLWAY_SIM_MEMORY"] = str(request["memory"])
    try:
        result = replay(traces.read(request["trace"]), request["steps"])
    except (torch.OutOfMemoryError, RuntimeError) as error:
        result = {"ran": False, "error": str(error).splitlines()[0]}
    print(json.dumps(result), file=out, flush=True)


def main():
    for line in sys.stdin:
        request = json.loads(line)
        traces.read(request["trace"])
        child = os.fork()
        if child == 0:
            answer(request, sys.stdout)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
