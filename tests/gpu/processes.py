"""The processes that belong to a command, found in /proc, and their end.

A process belongs to a command if it is in its session or its process group, or descends from a
process that does. Nothing here reads cmdline, environ or maps: for a process that hangs in a page
fault, reading those hangs too."""
import ctypes
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """Makes this process the parent of all orphans below it, so that they can be found."""
    try:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (AttributeError, OSError):
        pass


def table():
    """{pid: (parent, group, session, state)} of all processes that can be read."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    fields = stat.read().rpartition(b")")[2].split()
            except OSError:
                continue
            found[int(name)] = (int(fields[1]), int(fields[2]), int(fields[3]),
                                fields[0].decode())
    return found


def members(leader, orphans_of=None, spare=frozenset()):
    """The living processes that belong to the command that `leader` began, the eldest first. Those
    that were orphaned count too where `orphans_of` is the process that adopted them, but for those
    to `spare`, which were there before."""
    every = {pid: row for pid, row in table().items() if row[3] not in "ZX" and pid not in spare}
    known = {pid for pid, (parent, group, session, _) in every.items()
             if pid == leader or leader in (group, session) or parent == orphans_of}
    known.discard(os.getpid())
    while True:
        more = {pid for pid, row in every.items() if row[0] in known} - known
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
        reap(but=leader)
