"""What the next way of spilling needs to know of the driver, and a cost model of kernels. The names
of the data are those that session.datum makes."""
import machine
from rows import row


@row(order=1, seconds=60, cost=11, depends="probe tests/gpu/probe/unmap_then_copy.c",
     decides="whether a block can be unmapped first and then copied through a second address, so "
             "that no hidden write is lost, and what that costs")
def unmap_then_copy(session):
    """27 chunks of 64 MiB unmapped, copied through aliases, mapped back, 100 times: content, cost.

    Data: unmap_the_home_addresses_a_gib_ms, copy_out_a_gib_ms, copy_back_a_gib_ms,
    map_and_set_access_a_gib_ms, an_unrelated_kernel_beside_it_slower_times."""
    session.probe("unmap-then-copy", seconds=40)


@row(order=2, seconds=90, cost=6, again=False, depends="probe tests/gpu/probe/fault.c",
     decides="what a program sees that touches evicted memory without naming it")
def fault_kind(session):
    """Kernels touch addresses where nothing is mapped: which error, from which call, when.

    Data: read_unmapped_seen_after_us; so write_unmapped, read_evicted, write_evicted, beneath."""
    for kind in ("read-unmapped", "write-unmapped", "read-evicted", "write-evicted", "beneath"):
        before = machine.kernel_log()
        session.probe("fault", kind, seconds=30)
        said = machine.new_xids(before, machine.kernel_log()) or ["nothing new, or not readable"]
        session.figure(f"{kind}: the kernel's log", said[0])


@row(order=3, seconds=60, cost=9, depends="probe tests/gpu/probe/launch_beside.c",
     decides="whether a thread of its own may map and set access while the program launches")
def launch_beside_vmm(session):
    """Launches of one thread while another maps, sets access and unmaps chunks of 2 and 64 MiB.

    Data: launch_alone_p50_us, so p99 and longest; launch_beside_device_chunks_of_2_mib_p50_us, so
    host and 64; there also map_and_set_access_a_chunk_us and unmap_a_chunk_us."""
    session.probe("launch-beside", seconds=40)


@row(order=4, seconds=60, cost=4, depends="probe tests/gpu/probe/in_place.c",
     decides="what use in place is charged: bytes once, or bytes times reads")
def in_place(session):
    """Kernels with operands on host chunks, a matrix product too: how often do they cross the link?

    Data: a_kernel_reads_the_host_once_gb_s; on_the_host_read_us, so written,
    written_from_the_device, read_and_written, rows_of_12_kib_read_twice and
    rows_of_1_mib_read_twice, and all of them on_the_device; wide_product_all_on_the_device_us, so
    the_left_operand, the_right_operand and the_result, and deep_product; each that is on the host
    also as on_the_host_read_crosses_the_link_at_most_times, so at_least."""
    session.probe("in-place", seconds=40)


@row(order=5, seconds=60, cost=5, depends="probe tests/gpu/probe/managed.c src/system/clock.h",
     decides="whether an engine on managed memory is worth a design")
def managed(session):
    """Managed memory of 2 GiB, prefetched out, in and both, by 2 to 256 MiB, beside a kernel too.

    Data: prefetch_out_by_2_mib_rate_gb_s, so in and both_each_way, 16, 64 and 256; there also
    submission_of_a_piece_us and cpu_time_of_a_piece_us; the same with beside_a_kernel behind mib,
    there also the_kernel_slower_times; so batch_of_prefetches, without a kernel;
    discard_and_prefetch_in_by_2_mib, so 64; discard_out_by_64_mib."""
    session.probe("managed", seconds=40)


@row(order=6, seconds=60, cost=2,
     depends="probe tests/gpu/probe/poll.c src/system/backoff.h src/system/clock.h "
             "src/system/sleep.h",
     decides="how a thread waits for a copy while the program is held back")
def poll_cost(session):
    """From the end of a copy of 100 us to the knowledge of it, by the way of waiting; CPU time.

    Data: spin_on_cueventquery_from_submission_us; there also later_than_spinning_us,
    later_than_spinning_p90_us and cpu_time_us; so back_off, back_off_without_timer_slack,
    spin_200_us_then_back_off, cueventsynchronize, cueventsynchronize_blocking_event and
    custreamsynchronize."""
    session.probe("poll", seconds=40)


@row(order=7, seconds=60, cost=4, depends="probe tests/gpu/probe/both_ways.c",
     decides="whether small copies beside the program cost it anything")
def both_ways_small(session):
    """Copies of 8 MiB, 8 in a row, out, in and both, alone and beside a memory-bound kernel.

    Data: out_alone_gb_s, out_beside_a_kernel_gb_s, the_kernel_beside_out_slower_times; so in,
    out_and_in_by_turns_in_one_stream_each_way and out_and_in_at_once_each_way."""
    session.probe("both-ways", seconds=40)


@row(order=58, seconds=60, cost=5, depends="probe tests/gpu/probe/curves.c",
     decides="what the simulator's clock and the planner charge kernels and launches")
def cost_curves(session):
    """Launches of kernels and graphs; kernels, memset and memcpy by size, 4 KiB to 1 GiB.

    Data: launch_of_an_empty_kernel_us (the thread's time), launch_of_an_empty_kernel_until_done_us;
    so a_kernel_of_64_arguments, a_graph_of_1_empty_kernels and a_graph_of_64_empty_kernels;
    kernel_writes_4_kib_us, so 16, 64, 256, 1024, 2048, 4096, 16384, 32768, 65536, 262144 and
    1048576; so kernel_reads, kernel_copies, kernel_adds_in_place, memset and memcpy_dtod."""
    session.probe("launch-cost", seconds=40)
    session.probe("curves", seconds=40)


@row(order=32, seconds=120, cost=10, again=False,
     depends="probe tests/gpu/probe/host_pages.c tests/gpu/probe/cost.c",
     decides="from where host chunks come, of what size, and whether huge pages are worth a design")
def host_pages(session):
    """Host memory by how its pages were made: chunks by place and size, registered, huge pages.

    Data: own_node_chunks_of_2_mib_copy_out_gb_s, so copy_in and a_kernel_reads_it, 16, 64 and 256,
    host, and node_0, node_1 where there are several; registered_small_pages_copy_out_gb_s, so
    huge_pages and hugetlbfs; there also touch_a_mib_us, register_a_mib_us and unregister_a_mib_us;
    host_host_chunk_of_2_mib_create_us, and so the names of call-cost behind host and node_0."""
    session.probe("host-pages", "registered", seconds=30)
    session.probe("host-pages", label="own node: ", seconds=30)
    nodes = [str(node) for node, (cpu, memory) in machine.nodes().items() if cpu and memory]
    for place in ("HOST", *(nodes if len(nodes) > 1 else ())):
        label = f"{'node ' if place.isdigit() else ''}{place}: "
        session.probe("host-pages", place, label=label, seconds=30)
        session.probe("primitives", place, label=label, seconds=30)
