#!/usr/bin/env python3
"""Stands for Python: a script is forked from a server, anything else runs as always.

    fork_client.py SOCKET PYTHON WORD..."""
import os
import resource
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import forks  # noqa: E402


def ask(path, words):
    """The wait status of a forked program; None if nobody forks it."""
    request = forks.pack(words)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        try:
            channel.connect(path)
            socket.send_fds(channel, [request], range(forks.FILES))
            if not channel.recv(16):
                return None
        except OSError:
            return None
        # The server kills the program when this process ends, and the program prints its frames
        # first.
        signal.signal(signal.SIGABRT, signal.SIG_IGN)
        try:
            return int(channel.recv(16))
        except (OSError, ValueError):
            sys.exit("the process that forked this program has died")


def end(status):
    """Ends as the program did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def main():
    path, python, *words = sys.argv[1:]
    if words and words[0].endswith(".py"):
        status = ask(path, words)
        if status is not None:
            end(status)
    os.execv(python, [python, *words])


if __name__ == "__main__":
    main()
