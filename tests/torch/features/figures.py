"""What PyTorch counts of its memory."""
from features import HUGE, MIB, feature, megabytes, refusal


def program():
    """Some allocations of fixed sizes; what is left of them."""
    import torch
    kept = [torch.empty(size, dtype=torch.uint8, device="cuda")
            for size in (100, 5000, MIB, 3 * MIB, 30 * MIB, 100 * MIB)]
    del kept[1], kept[2]
    refusal(torch.empty, HUGE, dtype=torch.uint8, device="cuda")
    kept.append(torch.empty(20 * MIB + 1, dtype=torch.uint8, device="cuda"))
    return kept


def some(stats, *beginnings):
    return {key: value for key, value in stats.items() if key.startswith(beginnings)}


@feature("memory_allocated and its peak")
def memory_allocated():
    import torch
    kept = program()
    return {"now": torch.cuda.memory_allocated(), "peak": torch.cuda.max_memory_allocated(),
            "kept": len(kept)}


@feature("memory_reserved and its peak")
def memory_reserved():
    import torch
    kept = program()
    return {"reserved": torch.cuda.memory_reserved(),
            "reserved peak": torch.cuda.max_memory_reserved(), "kept": len(kept)}


@feature("memory_reserved is never below memory_allocated")
def reserved_and_allocated():
    import torch
    kept, holds = [], []
    for size in (1, 5, 17, 64, 3):
        kept.append(megabytes(size))
        holds.append(torch.cuda.memory_reserved() >= torch.cuda.memory_allocated())
    return {"holds": holds}


@feature("reset_peak_memory_stats")
def reset_peak():
    import torch
    x = megabytes(100)
    del x
    before = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    after = torch.cuda.max_memory_allocated()
    y = megabytes(10)
    return {"before": before, "after": after, "then": torch.cuda.max_memory_allocated(),
            "kept": y.numel()}


@feature("reset_max_memory_allocated and the older names")
def older_names():
    import warnings

    import torch
    warnings.simplefilter("ignore")
    x = megabytes(10)
    peak = torch.cuda.max_memory_allocated()
    del x
    torch.cuda.reset_max_memory_allocated()
    torch.cuda.reset_max_memory_cached()
    return {"peak": peak, "after": torch.cuda.max_memory_allocated(),
            "reserved cached": torch.cuda.memory_cached() == torch.cuda.memory_reserved()}


@feature("reset_accumulated_memory_stats")
def reset_accumulated():
    import torch
    kept = program()
    torch.cuda.reset_accumulated_memory_stats()
    stats = torch.cuda.memory_stats()
    return {**some(stats, "allocation.all", "allocated_bytes.all", "num_ooms"), "kept": len(kept)}


@feature("memory_stats: allocation.*")
def stats_allocation():
    import torch
    kept = program()
    return {**some(torch.cuda.memory_stats(), "allocation."), "kept": len(kept)}


@feature("memory_stats: allocated_bytes.*")
def stats_allocated_bytes():
    import torch
    kept = program()
    return {**some(torch.cuda.memory_stats(), "allocated_bytes."), "kept": len(kept)}


@feature("memory_stats: requested_bytes.*")
def stats_requested_bytes():
    import torch
    kept = program()
    return {**some(torch.cuda.memory_stats(), "requested_bytes."), "kept": len(kept)}


@feature("memory_stats: active.* and active_bytes.*")
def stats_active():
    import torch
    kept = program()
    return {**some(torch.cuda.memory_stats(), "active"), "kept": len(kept)}


@feature("memory_stats: segment.* and reserved_bytes.*")
def stats_segments():
    import torch
    kept = program()
    return {**some(torch.cuda.memory_stats(), "segment.", "reserved_bytes."), "kept": len(kept)}


@feature("memory_stats: inactive_split.* and inactive_split_bytes.*")
def stats_inactive():
    import torch
    kept = program()
    return {**some(torch.cuda.memory_stats(), "inactive"), "kept": len(kept)}


@feature("memory_stats: num_ooms, num_alloc_retries, num_sync_all_streams")
def stats_counts():
    import torch
    kept = program()
    return {**some(torch.cuda.memory_stats(), "num_oom", "num_alloc_r", "num_sync"),
            "kept": len(kept)}


@feature("memory_stats: num_device_alloc and num_device_free")
def stats_device_calls():
    import torch
    kept = program()
    kept.clear()
    torch.cuda.empty_cache()
    stats = torch.cuda.memory_stats()
    return {"device_alloc": stats["num_device_alloc"], "device_free": stats["num_device_free"]}


@feature("memory_stats: oversize_*, max_split_size")
def stats_oversize():
    import torch
    kept = program()
    return {**some(torch.cuda.memory_stats(), "oversize", "max_split"), "kept": len(kept)}


@feature("memory_stats: its keys")
def stats_keys():
    import torch
    kept = program()
    return {"keys": sorted(torch.cuda.memory_stats()), "kept": len(kept)}


@feature("memory_stats: totals are sums of the small and the large pool")
def stats_pools_add_up():
    import torch
    kept = program()
    stats = torch.cuda.memory_stats()
    names = {key.split(".")[0] for key in stats if ".large_pool." in key}
    wrong = [name for name in sorted(names) for kind in ("current", "allocated", "freed")
             if stats[f"{name}.all.{kind}"] != stats[f"{name}.small_pool.{kind}"]
             + stats[f"{name}.large_pool.{kind}"]]
    return {"wrong": wrong, "names": sorted(names), "kept": len(kept)}


@feature("memory_stats: allocated less freed is what is there")
def stats_balance():
    import torch
    kept = program()
    stats = torch.cuda.memory_stats()
    names = {key.rpartition(".")[0] for key in stats if key.endswith(".freed")}
    wrong = [name for name in sorted(names)
             if stats[name + ".allocated"] - stats[name + ".freed"] != stats[name + ".current"]
             or stats[name + ".peak"] < stats[name + ".current"]]
    return {"wrong": wrong, "kept": len(kept)}


@feature("memory_stats_as_nested_dict")
def nested_stats():
    import torch
    kept = program()
    stats = torch.cuda.memory_stats_as_nested_dict()
    return {"keys": sorted(stats), "allocation": stats["allocation"]["all"],
            "ooms": stats["num_ooms"], "kept": len(kept)}


@feature("memory_summary: the rows of allocated memory")
def memory_summary():
    import torch
    kept = program()
    rows = [line for line in torch.cuda.memory_summary().splitlines() if "|" in line]
    found = {}
    for line in rows:
        name = line.strip("| ").partition("|")[0].strip()
        if name in ("Allocated memory", "Active memory", "Requested memory", "Allocations",
                    "Active allocs"):
            found[name] = " ".join(line.split())
    return {**found, "rows": len(rows), "kept": len(kept)}


@feature("memory_summary: the rows of reserved memory")
def memory_summary_reserved():
    import torch
    kept = program()
    lines = torch.cuda.memory_summary(abbreviated=True).splitlines()
    return {"reserved": [" ".join(line.split()) for line in lines
                         if "reserved" in line or "segment" in line], "kept": len(kept)}


@feature("torch.accelerator: memory figures", since=(2, 9))
def accelerator_figures():
    import torch
    kept = program()
    return {"allocated": torch.accelerator.memory_allocated(),
            "peak": torch.accelerator.max_memory_allocated(),
            "reserved": torch.accelerator.memory_reserved(), "kept": len(kept)}


@feature("torch.accelerator.memory_stats and its resets", since=(2, 9))
def accelerator_stats():
    import torch
    kept = program()
    before = some(torch.accelerator.memory_stats(), "allocation.all", "allocated_bytes.all")
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    after = some(torch.accelerator.memory_stats(), "allocation.all", "allocated_bytes.all")
    return {**before, **{f"then {key}": value for key, value in after.items()}, "kept": len(kept)}


@feature("torch.accelerator.empty_cache", since=(2, 9))
def accelerator_empty_cache():
    import torch
    x = megabytes(10)
    del x
    torch.accelerator.empty_cache()
    return {"allocated": torch.accelerator.memory_allocated(),
            "reserved": torch.accelerator.memory_reserved()}


@feature("torch.accelerator.get_memory_info", since=(2, 10))
def accelerator_memory_info():
    import torch
    torch.zeros(1, device="cuda")
    free, total = torch.accelerator.get_memory_info()
    return {"total": total, "free is less": 0 < free < total}


@feature("host_memory_stats and its resets", since=(2, 7))
def host_memory_stats():
    import torch
    torch.zeros(1, device="cuda")
    kept = [torch.empty(size, pin_memory=True) for size in (100, 100_000, 1_000_000)]
    del kept[0]
    keys = "allocation", "allocated_bytes", "active", "segment", "num_host"

    def counts():
        stats = torch.cuda.host_memory_stats()
        return {key: value for key, value in stats.items()
                if key.startswith(keys) and "time" not in key}
    before = counts()
    torch.cuda.reset_peak_host_memory_stats()
    torch.cuda.reset_accumulated_host_memory_stats()
    return {**before, **{f"then {key}": value for key, value in counts().items()}}


@feature("torch.cuda.list_gpu_processes, without NVML's Python module or with it")
def list_gpu_processes():
    import torch
    x = megabytes(1)
    text = torch.cuda.list_gpu_processes()
    return {"line": text.splitlines()[0], "kept": x.numel()}


@feature("torch.cuda.memory_usage and utilization, without NVML's Python module or with it")
def memory_usage():
    import torch
    torch.zeros(1, device="cuda")
    return {"usage": refusal(torch.cuda.memory_usage), "use": refusal(torch.cuda.utilization)}


@feature("figures of a device that does not exist")
def figures_of_no_device():
    import torch
    torch.zeros(1, device="cuda")
    return {"allocated": refusal(torch.cuda.memory_allocated, 7),
            "stats": refusal(torch.cuda.memory_stats, 7),
            "tensor": refusal(torch.empty, 1, device="cuda:7"),
            "peak": refusal(torch.cuda.reset_peak_memory_stats, 7)}


@feature("figures before CUDA is initialised")
def figures_before_the_start():
    import torch
    return {"allocated": torch.cuda.memory_allocated(), "stats": torch.cuda.memory_stats(),
            "initialised": torch.cuda.is_initialized(), "empty": torch.cuda.empty_cache()}


@feature("torch.cuda.init, then figures")
def figures_after_init():
    import torch
    torch.cuda.init()
    stats = torch.cuda.memory_stats()
    return {"allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved(),
            "calls": stats["num_device_alloc"], "ooms": stats["num_ooms"]}


@feature("a training step's figures: before, forward, backward, step")
def figures_of_a_step():
    import torch
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                                torch.nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    seen = []
    for _ in range(2):
        seen.append(torch.cuda.memory_allocated())
        loss = model(torch.ones(32, 256, device="cuda")).sum()
        seen.append(torch.cuda.memory_allocated())
        loss.backward()
        seen.append(torch.cuda.memory_allocated())
        optimizer.step()
        optimizer.zero_grad()
        seen.append(torch.cuda.memory_allocated())
    return {"allocated": seen, "peak": torch.cuda.max_memory_allocated()}


@feature("a monitor's figures after each of many random frees")
def figures_of_a_random_program():
    import random

    import torch
    chance = random.Random(1)
    kept, seen = [], []
    for i in range(300):
        if kept and chance.random() < 0.45:
            kept.pop(chance.randrange(len(kept)))
        else:
            kept.append(torch.empty(chance.randrange(1, 4 * MIB), dtype=torch.uint8,
                                    device="cuda"))
        if i % 20 == 0:
            seen.append(torch.cuda.memory_allocated())
    return {"allocated": seen, "peak": torch.cuda.max_memory_allocated(),
            "count": torch.cuda.memory_stats()["allocation.all.allocated"]}


@feature("torch.cuda.device_memory_used", since=(2, 7))
def device_memory_used():
    import torch
    torch.zeros(1, device="cuda")
    return {"answer": refusal(torch.cuda.device_memory_used)}
