"""Runs one command with a bound on its time, its output and the machine's memory.

The command gets a session or a process group of its own, and files instead of pipes, so that
neither a process that it leaves behind nor one that cannot be killed makes the caller wait."""
import dataclasses
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import processes

HERE = pathlib.Path(__file__).resolve().parent
OUTPUT_BYTES = 64 << 20   # more than this in the command's folder is a flood
CORE_BYTES = 128 << 20    # of a core dump: its own memory and stacks, no files
EVIDENCE_SECONDS = 25
ABORT_SECONDS = 5
TICK = 0.05


@dataclasses.dataclass
class Ending:
    """How a command ended. status: its exit status, -n when it died of signal n, None when it
    could not be started or killed; stopped: why it was ended from outside, or ""; behind: the
    number of processes that it left behind; stuck: those that could not be killed."""
    status: int | None
    seconds: float
    stopped: str = ""
    behind: int = 0
    stuck: tuple = ()
    error: str = ""
    ended: float = 0.0  # of time.monotonic()


def memory_left():
    """The bytes that this machine and this cgroup can still give."""
    left = 1 << 62
    try:
        with open("/proc/meminfo") as lines:
            left = next(int(line.split()[1]) for line in lines
                        if line.startswith("MemAvailable:")) << 10
        with open("/sys/fs/cgroup/memory.max") as most, \
                open("/sys/fs/cgroup/memory.current") as now:
            # Files that are cached count as used here, but can be given up.
            left = min(left, int(most.read()) - int(now.read()) + cached())
    except (OSError, ValueError, StopIteration):
        pass
    return left


def cached():
    with open("/sys/fs/cgroup/memory.stat") as lines:
        return sum(int(line.split()[1]) for line in lines
                   if line.startswith(("inactive_file ", "active_file ")))


def folder_bytes(folder):
    """The bytes on disk below the folder, without core dumps, which have a limit of their own;
    files that vanish meanwhile count nothing."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            if name.startswith("core"):
                continue
            try:
                total += os.lstat(os.path.join(where, name)).st_blocks * 512
            except OSError:
                pass
    return total


def limit_self():
    """Called by a row's process, for itself and its programs: the kernel's choice when memory runs
    out, with small core dumps."""
    try:
        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        most = CORE_BYTES if most == resource.RLIM_INFINITY else min(most, CORE_BYTES)
        resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    except (OSError, ValueError):
        pass
    for path, text in (("/proc/self/oom_score_adj", "800"), ("/proc/self/coredump_filter", "0x11")):
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError:
            pass


def own_group(new_session):
    """Arguments of Popen for a session of its own, or a process group of its own."""
    if new_session:
        return {"start_new_session": True}
    if sys.version_info >= (3, 11):
        return {"process_group": 0}
    return {"preexec_fn": os.setpgrp}


def watch(child, folder, end, floor):
    """Waits for the command, or for a reason to stop it, which is returned; "" when it ended."""
    tick = 0
    while child.poll() is None:
        tick += 1
        if time.monotonic() > end:
            return "time"
        if tick % 5 == 0 and memory_left() < floor:
            return "memory"
        if tick % 10 == 0 and folder_bytes(folder) > OUTPUT_BYTES:
            return "output"
        time.sleep(TICK)
    return ""


def collect_evidence(pids, folder, seconds):
    """Looks at the processes from one of its own, which may hang instead of this one."""
    collector = subprocess.Popen(
        [sys.executable, "-B", str(HERE / "evidence.py"), str(folder), *map(str, pids)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)
    end = time.monotonic() + seconds
    while collector.poll() is None and time.monotonic() < end:
        time.sleep(TICK)
    processes.kill(collector.pid, seconds=1)
    collector.poll()


def end_gently(leader, orphans_of, spare):
    """SIGABRT makes Python print its frames and others dump core, where they do not ignore it."""
    processes.signal_all(processes.members(leader, orphans_of, spare), signal.SIGABRT)
    end = time.monotonic() + ABORT_SECONDS
    while processes.members(leader, orphans_of, spare) and time.monotonic() < end:
        time.sleep(TICK)
        if orphans_of is not None:
            processes.reap(but=leader)


def run(command, folder, seconds, *, env=None, name="", new_session=False,
        evidence=EVIDENCE_SECONDS, floor=1 << 30, cwd=None):
    """Runs the command with its output in `folder`/`name`stdout and stderr; at most so many
    seconds, then `evidence` seconds to look at it, and ABORT_SECONDS and a few to kill it."""
    orphans_of = os.getpid() if new_session else None
    # What an earlier row left and nobody can kill is not this one's.
    spare = frozenset(processes.members(-1, orphans_of)) if new_session else frozenset()
    begin = time.monotonic()
    with open(folder / f"{name}stdout", "wb") as out, open(folder / f"{name}stderr", "wb") as err:
        try:
            child = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env=env, cwd=cwd or folder, **own_group(new_session))
        except (OSError, subprocess.SubprocessError) as error:
            return Ending(None, 0.0, error=str(error))
    stopped = watch(child, folder, begin + seconds, floor)
    ended = time.monotonic()
    family = processes.members(child.pid, orphans_of, spare)
    behind = len([pid for pid in family if pid != child.pid])
    if stopped:
        if evidence > 0 and stopped == "time":
            collect_evidence(family, folder, evidence)
        if stopped != "memory":
            end_gently(child.pid, orphans_of, spare)
    stuck = processes.kill(child.pid, orphans_of, spare)
    status = child.poll()
    if orphans_of is not None:
        processes.reap(but=child.pid)
    return Ending(status, ended - begin, stopped, 0 if stopped else behind, tuple(stuck),
                  ended=ended)
