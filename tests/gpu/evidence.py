#!/usr/bin/env python3
"""Writes what explains a process that hangs.

    evidence.py FOLDER PID...

For each process a file proc-PID with the states of its threads, and stack-PID with the debugger's
view where there is one. It runs in a process of its own, because looking may hang as well."""
import os
import pathlib
import shutil
import subprocess
import sys

PROCESSES = 16
THREADS = 64
DEBUGGER_SECONDS = 8
KEPT = ("Name", "State", "PPid", "NSpid", "VmRSS", "VmLck", "Threads", "SigBlk", "SigIgn", "SigCgt",
        "Seccomp", "voluntary_ctxt_switches")


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def thread(pid, task):
    base = f"/proc/{pid}/task/{task}"
    status = [line for line in read(f"{base}/status").splitlines()
              if line.split(":")[0] in KEPT]
    return "\n".join([f"== thread {task}: {read(base + '/comm')}", *status,
                      f"wchan: {read(base + '/wchan')}", f"syscall: {read(base + '/syscall')}",
                      "stack:", read(base + "/stack"), ""])


def process(pid):
    try:
        tasks = sorted(os.listdir(f"/proc/{pid}/task"), key=int)[:THREADS]
    except OSError:
        return ""
    return "\n".join(thread(pid, task) for task in tasks)


def debugger():
    """cuda-gdb sees kernels as well, gdb the host's side."""
    for name in ("cuda-gdb", "/usr/local/cuda/bin/cuda-gdb", "gdb"):
        if shutil.which(name):
            return shutil.which(name)
    return None


def backtrace(program, pid, path):
    commands = ["set pagination off", "set confirm off", "thread apply all backtrace 40"]
    if "cuda" in pathlib.Path(program).name:
        commands.append("info cuda kernels")
    with open(path, "wb") as out:
        try:
            subprocess.run([program, "-batch", "-nx", "-p", str(pid),
                            *(word for line in commands for word in ("-ex", line))],
                           stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                           timeout=DEBUGGER_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            out.write(f"\n({error})\n".encode())


def main():
    folder = pathlib.Path(sys.argv[1])
    pids = [int(word) for word in sys.argv[2:2 + PROCESSES]]
    for pid in pids:
        (folder / f"proc-{pid}").write_text(process(pid))
    program = debugger()
    for pid in pids[:3] if program else ():
        backtrace(program, pid, folder / f"stack-{pid}")


if __name__ == "__main__":
    main()
