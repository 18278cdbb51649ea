"""What this machine is."""
import machine
from rows import row


@row(order=280, seconds=30, cost=1,
     decides="limits of this machine")
def machine_facts(session):
    """Kernel, NUMA nodes, limits, memory, cgroup and link of this machine."""
    for subject, value in machine.more_facts():
        session.figure(subject, value)
