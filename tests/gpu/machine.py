"""Facts about this machine, its GPU and its kernel log. Nothing here may hang or fail: what cannot
be found out is left out."""
import os
import pathlib
import platform
import re
import resource
import subprocess
import tempfile

SMI_SECONDS = 20
KERNEL_LINES = 400
FLOOR_SHARE = 0.03   # of the memory of the machine: below it a row is stopped
FLOOR_BYTES = 1 << 30
FLOOR_VARIABLE = "SPILLWAY_GPU_CHECK_FLOOR"  # in bytes, for the rehearsal


def output_of(command, seconds=SMI_SECONDS):
    """What a command prints; "" if it cannot or takes too long. Its output is a file, and it is
    left alone when it cannot be killed."""
    with tempfile.TemporaryFile() as out:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, start_new_session=True)
        except OSError:
            return ""
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            return ""
        out.seek(0)
        return out.read(4 << 20).decode(errors="replace") if child.returncode == 0 else ""


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""


def memory_bytes():
    match = re.search(r"MemTotal:\s+(\d+) kB", read("/proc/meminfo"))
    return int(match.group(1)) << 10 if match else 0


def memory_floor():
    """A row that leaves the machine with less memory than this is stopped, before the kernel
    chooses a victim."""
    if os.environ.get(FLOOR_VARIABLE, "").isdigit():
        return int(os.environ[FLOOR_VARIABLE])
    return min(FLOOR_BYTES, int(memory_bytes() * FLOOR_SHARE))


def kernel_log():
    """The last lines about the GPU in the kernel's log; none where it cannot be read."""
    lines = output_of(["dmesg"], 5).splitlines()[-KERNEL_LINES:]
    return [line for line in lines if re.search(r"NVRM|Xid|nvidia|Out of memory|oom-kill", line)]


def new_xids(before, after):
    """What the kernel said about the GPU meanwhile, as a note for the row."""
    fresh = [line for line in after if line not in set(before)
             and not re.search(r"Serial Number|GPU at PCI", line)]
    return [re.sub(r"^\[.*?\]\s*", "kernel: ", line)[:160] for line in fresh[:3]]


def save_state(folder):
    """The GPU's full state after a row went wrong."""
    try:
        (folder / "nvidia-smi-q.txt").write_text(output_of(["nvidia-smi", "-q"]))
        (folder / "kernel-log.txt").write_text("\n".join(kernel_log()) + "\n")
    except OSError:
        pass


def nodes():
    """{node: (has CPUs, has memory)} as sysfs lists them."""
    def members(name):
        found = set()
        for part in read(f"/sys/devices/system/node/{name}").split(","):
            first, _, last = part.partition("-")
            if first.isdigit():
                found |= set(range(int(first), int(last or first) + 1))
        return found
    cpu, memory = members("has_cpu"), members("has_memory")
    return {node: (node in cpu, node in memory) for node in sorted(members("online"))}


def facts(setting):
    """What stands at the head of the page."""
    found = {"gpu": "unknown GPU", "simulated": setting.simulated}
    if setting.simulated:
        found["gpu"] = f"simulated GPU of {setting.memory}"
    else:
        query = output_of(["nvidia-smi", "--format=csv,noheader",
                           "--query-gpu=name,driver_version,memory.total,pcie.link.gen.current,"
                           "pcie.link.width.current,persistence_mode,mig.mode.current"])
        found["gpu"] = query.partition(",")[0].strip() or found["gpu"]
        found["nvidia-smi"] = "; ".join(query.splitlines())
    found["spillway"] = output_of([f"{setting.root}/spillway", "--version"], 10).strip()
    found["python"] = platform.python_version()
    found["kernel"] = platform.release()
    return found


def more_facts():
    """(subject, value) of what may limit spillway on this machine."""
    status = read("/proc/self/status")
    yield "kernel", platform.release()
    yield "driver", read("/proc/driver/nvidia/version").partition("\n")[0] or "not shown"
    for line in read("/proc/driver/nvidia/params").splitlines():
        if line.startswith(("EnableStreamMemOPs", "RegistryDwords", "PeerMappingOverride")):
            yield "driver parameter", line
    yield "CPUs", len(os.sched_getaffinity(0))
    for node, (cpu, memory) in nodes().items():
        yield f"NUMA node {node}", f"CPUs: {cpu}, memory: {memory}"
    if not nodes():
        yield "NUMA nodes", "sysfs lists none"
    for key in ("CapEff", "Seccomp", "NoNewPrivs", "Mems_allowed_list"):
        match = re.search(rf"^{key}:\s*(.*)", status, re.MULTILINE)
        yield key, match.group(1) if match else "not shown"
    for name in ("AS", "MEMLOCK", "NOFILE", "NPROC", "CORE"):
        soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        yield f"ulimit {name}", f"{soft} of {hard}"
    for path in ("/proc/sys/vm/max_map_count", "/proc/sys/vm/overcommit_memory",
                 "/proc/sys/kernel/numa_balancing", "/proc/sys/kernel/core_pattern",
                 "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/fs/cgroup/memory.max",
                 "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/pids.max"):
        yield path, read(path) or "not shown"
    for key in ("MemTotal", "MemAvailable", "SwapTotal", "Unevictable", "HugePages_Total"):
        match = re.search(rf"^{key}:\s*(.*)", read("/proc/meminfo"), re.MULTILINE)
        yield key, match.group(1) if match else "not shown"
    yield "IOMMU groups", len(list(pathlib.Path("/sys/kernel/iommu_groups").glob("*")))
    yield "WSL", "yes" if "microsoft" in platform.release().lower() else "no"
    yield "container", next((name for name in ("/.dockerenv", "/run/.containerenv")
                             if os.path.exists(name)), "no mark")
    yield "kernel log", "readable" if output_of(["dmesg"], 5) else "not readable"
    for device in sorted(pathlib.Path("/sys/bus/pci/devices").glob("*")):
        if read(device / "vendor") == "0x10de" and read(device / "class").startswith("0x03"):
            yield f"PCI {device.name}", (f"width {read(device / 'current_link_width')} of "
                                         f"{read(device / 'max_link_width')}, speed "
                                         f"{read(device / 'current_link_speed')}, NUMA node "
                                         f"{read(device / 'numa_node')}")


def full(setting):
    """Everything about the machine, as text for the archive."""
    parts = [f"{subject}: {value}" for subject, value in more_facts()]
    for command in (["nvidia-smi", "-q"], ["nvidia-smi", "topo", "-m"], ["lscpu"], ["lspci", "-tv"],
                    ["ldconfig", "-p"]):
        if not (setting.simulated and command[0] == "nvidia-smi"):
            parts.append(f"\n== {' '.join(command)}\n{output_of(command)}")
    return "\n".join([*parts, "\n== kernel log", *kernel_log()])
