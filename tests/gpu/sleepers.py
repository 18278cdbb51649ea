"""What the tests leave behind on purpose: processes that sleep for a number of seconds of their
own."""
import pathlib
import time

import processes

PATIENCE = 10  # seconds


def sleepers(seconds):
    """The processes that run `sleep` with that number."""
    found = []
    for pid in processes.table():
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", str(seconds).encode()]:
            found.append(pid)
    return found


def await_sleepers(seconds, number):
    """Those processes, once there are so many, or when that takes too long. A process has the words
    of its program only a moment after its parent knows of it, and stays a moment after it was
    killed."""
    end = time.monotonic() + PATIENCE
    while len(sleepers(seconds)) != number and time.monotonic() < end:
        time.sleep(0.05)
    return sleepers(seconds)
