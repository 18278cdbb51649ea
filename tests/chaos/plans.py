"""Draws a run from a seed: what the random program does, and what it has to bear.

A plan consists of parts, each with a name. Any but the first can be left out, which is how a
failing run is made smaller.
"""
import dataclasses
import json
import random

MIB = 1 << 20
OUT_OF_MEMORY, OPERATING_SYSTEM = 2, 304


@dataclasses.dataclass
class Part:
    """What one part of a plan adds."""
    name: str
    arguments: list = dataclasses.field(default_factory=list)  # of the program
    options: dict = dataclasses.field(default_factory=dict)    # without the prefix SPILLWAY_
    facts: dict = dataclasses.field(default_factory=dict)      # for test_chaos.py


# Driver functions that the program or spillway calls; without cuCtxPopCurrent, after whose failure
# nobody knows which context is current.
FAILING = """cuMemCreate cuMemCreate cuMemMap cuMemMap cuMemSetAccess cuMemSetAccess cuMemUnmap
    cuMemRelease cuMemAddressReserve cuMemAddressFree cuEventCreate cuEventRecord cuEventQuery
    cuEventSynchronize cuEventDestroy_v2 cuStreamWaitEvent cuStreamSynchronize cuCtxSynchronize
    cuStreamIsCapturing cuStreamGetCaptureInfo_v3 cuStreamGetId cuStreamGetCtx cuCtxGetCurrent
    cuCtxGetDevice cuCtxGetId cuCtxRecordEvent cuCtxWaitEvent cuStreamCreate cuStreamDestroy_v2
    cuCtxCreate_v4 cuCtxDestroy_v2 cuCtxPushCurrent_v2 cuCtxSetCurrent
    cuMemAlloc_v2 cuMemFree_v2 cuMemAllocAsync cuMemFreeAsync cuMemAllocPitch_v2 cuMemGetInfo_v2
    cuMemHostAlloc cuMemFreeHost cuMemHostRegister_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2
    cuMemcpyHtoDAsync_v2 cuMemcpyAsync cuMemsetD32Async cuMemsetD8Async cuLaunchKernel
    cuGraphInstantiateWithFlags cuGraphLaunch cuStreamBeginCapture_v2 cuStreamEndCapture
    cuMemPoolCreate cuMemPoolTrimTo cuDeviceGetDefaultMemPool cuLaunchHostFunc cuModuleLoadData
    cuPointerGetAttribute cuMemGetAddressRange_v2 cuDevicePrimaryCtxRetain cuFuncGetParamInfo
    cuThreadExchangeStreamCaptureMode cuDeviceGetAttribute cuMemGetAllocationGranularity
    cuCtxSetLimit cuInit""".split()
CODES = (OUT_OF_MEMORY, OUT_OF_MEMORY, 999, 801, OPERATING_SYSTEM, 1)

DENIED = """membarrier memfd_create process_vm_readv mbind pipe2 sched_getaffinity clone3 statx
    mlock fallocate renameat2 linkat""".split()


def size(draw, low, high):
    """A number of bytes between two powers of two, each power as often as the next."""
    return int(2 ** draw.uniform(low, high))


def program(draw):
    threads = draw.choice((1, 1, 2, 3, 4, 6))
    devices = draw.choice((1, 1, 1, 2, 3))
    words = [word for word in ("forks", "contexts", "captures", "functions", "holds")
             if draw.random() < 0.6]
    log2, spread = draw.randint(12, 23), draw.choice((1, 3, 99))
    return Part("program", [f"threads={threads}", f"steps={size(draw, 7, 12) // threads + 20}",
                            f"devices={devices}", f"size={log2}", f"spread={spread}", *words],
                {"SIM_DEVICES": devices, "SIM_SEED": draw.randrange(1 << 30), "SUMMARY": "off"})


def room(draw):
    """Memory for a part of the blocks: then they move, or at least take each other's place."""
    size_log2, few = draw.randint(20, 22), draw.random() < 0.6
    memory = size(draw, size_log2 + 2, size_log2 + 4.5) if few else size(draw, 22, 27)
    words = [f"size={size_log2}", "spread=2"] if few else []
    return Part("little memory", [*words, f"allow={OUT_OF_MEMORY}"],
                {"SIM_MEMORY": memory // (2 * MIB) * 2 * MIB})


def host(draw):
    options = draw.choice(({"HOST_LIMIT": size(draw, 21, 27)}, {"SPILL": "off"},
                           {"SIM_HOST_MEMORY": size(draw, 22, 27)}, {"SIM_HOST_NUMA": "off"},
                           {"SIM_HOST_NUMA": "host"}, {"SIM_HOST_NUMA": "asymmetric"},
                           {"SIM_HOST_NODES": 2}))
    return Part("host memory", [f"allow={OUT_OF_MEMORY}"], options)


def limit(draw):
    return Part("limit", [f"allow={OUT_OF_MEMORY}"],
                {"LIMIT": draw.choice((size(draw, 21, 27), "30%", "100%"))})


def faults(draw):
    rules, codes = [], {OUT_OF_MEMORY}
    for _ in range(draw.randint(1, 4)):
        code = draw.choice(CODES)
        codes.add(code)
        number = size(draw, 0, 8)
        rules.append(f"{draw.choice(FAILING)}:{number}{draw.choice(('', '', '', '+'))}:{code}")
    # The memory of a capture that fails may answer by any error of captures.
    return Part("faults", [*(f"allow={code}" for code in sorted(codes)), "faults"],
                {"SIM_FAIL": ",".join(rules)}, {"faults": True})


def resources(draw):
    word = draw.choice((f"nofile={draw.randint(4, 40)}", f"late:nofile={draw.randint(8, 40)}",
                        f"as={size(draw, 26, 34)}", f"late:as={size(draw, 26, 34)}",
                        f"late:fsize={size(draw, 0, 20)}", f"fsize={size(draw, 0, 20)}",
                        f"memlock={size(draw, 0, 22)}", f"late:data={size(draw, 20, 28)}"))
    return Part("resources", [word, f"allow={OUT_OF_MEMORY}", f"allow={OPERATING_SYSTEM}",
                              "allow=3", "allow=100", "allow=999"], {}, {"resources": word})


def denied(draw):
    calls = draw.sample(DENIED, draw.randint(1, 4))
    late = draw.choice(("", "late:"))
    return Part("denied", [f"{late}deny={call}" for call in calls]
                + [f"allow={OUT_OF_MEMORY}", f"allow={OPERATING_SYSTEM}"]
                + (["allow=3", "allow=100", "allow=999"] if "memfd_create" in calls else []),
                {}, {"denied": calls})


def folders(draw):
    way = draw.choice(("full", "read-only", "no /proc", "no /proc", "missing"))
    return Part("folders", [], {}, {"folders": way, "disk": draw.choice((4, 16, 128, 2048))})


def action(draw):
    """An action of a policy, of any kind."""
    kinds = ({"placement": draw.choice(("device", "host", "auto"))}, {"movable": False},
             {"priority": draw.randint(-100, 100)}, {"host_share": f"{draw.randint(0, 100)}%"},
             {"limit": {"max": draw.choice((f"{draw.randint(1, 40)}MiB", "20%")),
                        "then": draw.choice(("spill", "fail", "warn"))}},
             {"region": draw.choice("abc")}, {"commit": draw.choice(("lazy", "eager"))},
             {"log": True}, {})
    chosen = dict(draw.choice(kinds))
    if draw.random() < 0.4:
        chosen |= draw.choice(kinds[2:])
    if chosen.get("placement") in ("host", "device"):
        chosen.pop("host_share", None)
    return chosen


def rule(draw, number, is_last):
    low = size(draw, 6, 20)
    matches = ({"size": {"min": low}}, {"size": {"max": low}}, {"nth": f"{number + 1}-"},
               {"api": draw.choice(("cuMemAlloc", "cuMemAllocAsync", "cuMemCreate",
                                    "cuMemAlloc*"))},
               {"device": 0},
               {"native": {"symbol": draw.choice(("block_allocate", "act_context"))}})
    match = {} if is_last and draw.random() < 0.4 else draw.choice(matches)
    return {"name": f"rule-{number}", "match": match, "action": action(draw)}


def policy(draw):
    count = draw.randint(1, 5)
    text = json.dumps({"version": 1, "rules": [rule(draw, number, number == count - 1)
                                               for number in range(count)]})
    return Part("policy", [f"allow={OUT_OF_MEMORY}"], {}, {"policy": text})


def settings(draw):
    """Options of spillway that change how it works, not what it is for."""
    every = (("CHECK", "on"), ("VERIFY", "on"), ("SITES", draw.choice(("off", "native"))),
             ("MODE", draw.choice(("tensor", "segment", "observe"))), ("GROWTH", "0%"),
             ("OVERLAP", draw.choice(("off", "guarded"))), ("CHUNK", "2MiB"),
             ("MOVE_WAIT", draw.choice((0, 1, 100))), ("FREE_WAITS", "on"))
    return Part("settings", [], dict(draw.sample(every, draw.randint(1, 4))))


def choices(draw):
    """Choices that NVIDIA does not document, or a machine that lacks something."""
    every = (("SIM_UNMAP", "chunk"), ("SIM_SETACCESS", "chunk"), ("SIM_REGRANT", "safe"),
             ("SIM_FREE_SYNC", "off"), ("SIM_UNMAP_WAITS", "on"), ("SIM_PEERS", "off"),
             ("SIM_HOST_MAP", "off"), ("SIM_RDMA", "off"), ("SIM_TIME", "on"),
             ("SIM_CROSSING", "works"), ("SIM_MAP_MAX", draw.choice((60, 1000))),
             ("SIM_VA_MAX", size(draw, 24, 32)), ("SIM_PROFILE", "t4-16g"))
    return Part("choices", [], dict(draw.sample(every, draw.randint(1, 3))))


def signals(draw):
    return Part("signals", ["signals"])


def end(draw):
    way = draw.choice(("exit", "quick", "kill", "kill", "term", "reset", "reset"))
    return Part("end", [f"leave={way}"], {}, {"leave": way})


def writing(draw):
    """Files that spillway writes."""
    kinds = draw.sample(("stats", "record", "log", "sim-log", "summary"), draw.randint(1, 4))
    return Part("writing", [], {"RECORD_SIZE": draw.choice(("64KiB", "1MiB", "256MiB"))}
                if "record" in kinds else {}, {"writes": kinds})


def launcher(draw):
    return Part("launcher", [], {}, {"launcher": draw.choice(("sim", "run"))})


PARTS = ((room, 0.6), (host, 0.25), (limit, 0.15), (faults, 0.35), (resources, 0.25),
         (denied, 0.25), (folders, 0.2), (policy, 0.35), (settings, 0.5), (choices, 0.4),
         (signals, 0.3), (end, 0.3), (writing, 0.6), (launcher, 0.2))


def plan(seed):
    """The parts of a run."""
    draw = random.Random(seed)
    parts = [program(draw)]
    for make, share in PARTS:
        # Each draws from a generator of its own, so that a change of one leaves the others alone.
        own = random.Random(draw.random())
        if own.random() < share:
            parts.append(make(own))
    leave_out_deadlocks(parts)
    return [*parts, Part("storm", ["storm"])]


def leave_out_deadlocks(parts):
    """A program must not hold what a stream waits for while it calls a function that may wait for
    the device: an allocation, where the host has no room either, and any, where unmapping waits."""
    options = {name: value for part in parts for name, value in part.options.items()}
    spoiled = {"functions", "holds"} if options.get("SIM_UNMAP_WAITS") == "on" else \
        {"holds"} if {part.name for part in parts} & {"host memory", "faults", "resources",
                                                      "denied"} else set()
    parts[0].arguments[:] = [word for word in parts[0].arguments if word not in spoiled]
