"""The processes that belong to a command, found in /proc, and their end.

A process belongs to a command if it is in its session or its process group, or descends from a
process that does. One that a server has forked is named after the process that asked for it, and
counts as that one's child. Nothing here reads cmdline, environ or maps: for a process that hangs in
a page fault, reading those hangs too."""
import ctypes
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
FORKED_FOR = b"forked-"  # the name of a forked process, before the pid; 15 bytes at most together


def adopt_orphans():
    """Makes this process the parent of all orphans below it, so that they can be found."""
    try:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (AttributeError, OSError):
        pass


def count_as_child(pid):
    """Makes this process count as a child of another one."""
    with open("/proc/self/comm", "wb") as file:
        file.write(FORKED_FOR + str(pid).encode())


def table():
    """{pid: (parent, group, session, state, who asked for it)} of all processes that can be
    read."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    called, _, rest = stat.read().partition(b"(")[2].rpartition(b")")
            except OSError:
                continue
            fields = rest.split()
            asker = called.removeprefix(FORKED_FOR) if called.startswith(FORKED_FOR) else b""
            found[int(name)] = (*map(int, fields[1:4]), fields[0].decode(),
                                int(asker if asker.isdigit() else fields[1]))
    return found


def members(leader, orphans_of=None, spare=frozenset()):
    """The living processes that belong to the command that `leader` began, the eldest first. Those
    that were orphaned count too where `orphans_of` is the process that adopted them, but for those
    to `spare`, which were there before."""
    every = {pid: row for pid, row in table().items() if row[3] not in "ZX" and pid not in spare}
    known = {pid for pid, (parent, group, session, _, _) in every.items()
             if pid == leader or leader in (group, session) or parent == orphans_of}
    known.discard(os.getpid())
    while True:
        more = {pid for pid, row in every.items() if known & {row[0], row[4]}} - known
        if not more:
            return sorted(known)
        known |= more


def reap(but=None):
    """Waits for the ended children of this process, except `but`, whose Popen object waits."""
    for pid, row in table().items():
        if row[0] == os.getpid() and row[3] == "Z" and pid != but:
            try:
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                pass


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def kill(leader, orphans_of=None, spare=frozenset(), seconds=5.0):
    """Kills what belongs to the command, again while more appears. Returns what could not be
    killed in that time: processes that wait inside the kernel."""
    end = time.monotonic() + seconds
    while True:
        left = members(leader, orphans_of, spare)
        if not left or time.monotonic() > end:
            return left
        signal_all(left, signal.SIGKILL)
        time.sleep(0.05)
        if orphans_of is not None:
            reap(but=leader)
