"""What the next way of spilling needs to know of the driver, and a cost model of kernels. The names
of the data are those that session.datum makes."""
from rows import row


@row(call=1, order=3, seconds=60, cost=9, depends="probe",
     decides="whether a thread of its own may map and set access while the program launches")
def launch_beside_vmm(session):
    """Launches of one thread while another maps, sets access and unmaps chunks of 2 and 64 MiB.

    Data: launch_alone_p50_us, so p99 and longest; launch_beside_device_chunks_of_2_mib_p50_us, so
    host and 64; there also map_and_set_access_a_chunk_us and unmap_a_chunk_us."""
    session.probe("launch-beside", seconds=40)
