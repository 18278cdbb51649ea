"""The driver alone, by sections of the probe (tests/gpu/probe/), each in a process of its own."""
import machine
from rows import row


@row(order=100, seconds=60, cost=1, depends="probe tests/gpu/probe/facts.c",
     decides="which kinds of memory exist, and how much address space an arena may reserve")
def driver_facts(session):
    """Attributes of the device, granularities, and how much address space may be reserved."""
    session.probe("facts")


@row(order=110, seconds=120, cost=1, again=False, depends="probe tests/gpu/probe/facts.c",
     decides="HOST_NUMA or HOST, and whether asking is safe")
def host_nodes(session):
    """Which NUMA nodes give host chunks, and whether the location HOST does; each may crash."""
    for node, (cpu, memory) in machine.nodes().items() or {0: (True, True)}.items():
        if cpu and memory:
            session.probe("host-node", str(node), seconds=20)
        else:
            session.skip(f"node {node}", "no CPUs or no memory: not asked")
    session.probe("host-node", "host", seconds=20)


@row(order=120, seconds=150, cost=9, again=False, depends="probe tests/gpu/probe/crossing.c",
     decides="whether one copy may cross from a device chunk to a host chunk")
def crossing_copies(session):
    """Copies and memsets over the boundary between a device chunk and a host chunk."""
    for kind in ("memset", "HtoD", "DtoH", "DtoD", "any", "2D"):
        session.probe("crossing", kind, seconds=40)


@row(order=130, seconds=90, cost=20, depends="probe tests/gpu/probe/in_use.c",
     decides="whether set-access on memory in use is harmless")
def access_in_use(session):
    """Set-access 10,000 times on memory that a kernel and a copy use at that time."""
    session.probe("in-use", "device", label="device chunks: ")
    session.probe("in-use", "mixed", label="both tiers: ")


@row(order=140, seconds=60, cost=1, depends="probe tests/gpu/probe/record_event.c",
     decides="the way to make fences of the whole device")
def record_event(session):
    """cuCtxRecordEvent: cost with 1, 32 and 96 streams, and which work it covers."""
    session.probe("record-event")


@row(order=8, seconds=60, cost=1, depends="probe tests/gpu/probe/capture.c",
     decides="which calls another thread may make beside a capture in the global mode")
def capture(session):
    """Calls of another thread beside a capture in the global mode: refused, or breaking it?"""
    session.probe("capture")


@row(order=160, seconds=120, cost=4, depends="probe tests/gpu/probe/move.c",
     decides="the size of chunks, and whether each chunk stays mapped at a second address")
def move_cost(session):
    """A move of 512 MiB in chunks of 2, 16 and 32 MiB, by staging and with kept mappings."""
    for shape in ("2", "2kept", "16", "16kept", "32"):
        session.probe("move", shape, seconds=40)


@row(order=170, seconds=120, cost=5, depends="probe tests/gpu/probe/cost.c",
     decides="whether cost grows by call or by chunk, and whether one unmap may cover several "
             "chunks")
def range_cost(session):
    """Map, set access and unmap on ranges of 1 to 512 chunks: device, host, and both mixed."""
    for tiers in ("device", "host", "mixed"):
        session.probe("ranges", tiers, seconds=40)


@row(order=180, seconds=90, cost=2, depends="probe tests/gpu/probe/beside.c",
     decides="whether unmap, set-access, free and create wait for running work")
def beside_kernel(session):
    """Do create, map, set access, unmap, free and page-locking wait for a running kernel?"""
    session.probe("beside-kernel")


@row(order=190, seconds=90, cost=5, depends="probe tests/gpu/probe/beside.c",
     decides="the same for running copies")
def beside_copy(session):
    """Do create, map, set access, unmap, free and page-locking wait for a running copy?"""
    session.probe("beside-copy")


@row(order=200, seconds=60, cost=3, again=False, depends="probe tests/gpu/probe/tiers.c",
     decides="whether a write to read-only memory faults")
def read_only(session):
    """Read-only access: does a write fault, does a read go on, what does the change cost?"""
    for step in ("read", "cost", "write"):
        session.probe("read-only", step, seconds=20)


@row(order=210, seconds=60, cost=1, depends="probe tests/gpu/probe/tiers.c",
     decides="that content survives moves, and what pointer queries say of host chunks")
def tiers(session):
    """One address on two tiers: content, second mappings, what pointer queries answer."""
    session.probe("tiers")


@row(order=220, seconds=60, cost=1, depends="probe tests/gpu/probe/instructions.c",
     decides="whether every way to reach memory works on host chunks")
def instructions(session):
    """Atomics, reductions, bulk copies and cp.async on host chunks."""
    session.probe("instructions")


@row(order=230, seconds=120, cost=5, again=False, depends="probe tests/gpu/probe/exhaust.c",
     decides="time, host memory and exit time with all of the card in chunks")
def fill_card(session):
    """All memory of the card in chunks of 2 and 32 MiB: time, host memory, time to exit."""
    for mib in ("2", "32"):
        seconds = session.probe("fill-card", mib, label=f"{mib} MiB: ", seconds=60)
        if seconds is not None:
            session.timing(f"exit with all chunks of {mib} MiB", f"{seconds:.2f} s")


@row(order=30, seconds=180, cost=60, again=False, depends="probe tests/gpu/probe/exhaust.c",
     decides="mappings, time and host memory of the host tier")
def host_chunks(session):
    """Host chunks up to half of the available memory: time, mappings, MemAvailable."""
    for shape in ("2", "16", "16,host", "16,locked"):
        seconds = session.probe("host-chunks", shape, label=f"{shape}: ", seconds=60)
        if seconds is not None:
            session.timing(f"exit with host chunks {shape}", f"{seconds:.2f} s")


@row(order=240, seconds=60, cost=3, depends="probe tests/gpu/probe/cost.c",
     decides="the cost of each call by size")
def call_cost(session):
    """The cost of each memory call by size, for device and host chunks."""
    for tier in ("device", "host"):
        session.probe("primitives", tier, seconds=30)


@row(order=250, seconds=60, cost=2, depends="probe tests/gpu/probe/link.c",
     decides="bandwidth of the link, and of kernels on host chunks")
def link(session):
    """Bandwidth of the link, of kernels on either tier, and of copies between tiers."""
    session.probe("link")


@row(order=260, seconds=60, cost=1, depends="probe tests/gpu/probe/calls.c",
     decides="the cost of events, queries and launches")
def small_calls(session):
    """The cost of small calls: events, streams, launches, queries."""
    session.probe("calls")


@row(order=270, seconds=60, cost=1, again=False, depends="probe tests/gpu/probe/calls.c",
     decides="which questions about kernels are safe")
def parameters(session):
    """What may be asked about a kernel's parameters, before its first launch, by either handle."""
    session.probe("params", seconds=20)
    session.probe("params", "library", seconds=20, options={"CUDA_MODULE_LOADING": "LAZY"})
