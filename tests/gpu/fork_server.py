#!/usr/bin/env python3
"""Imports PyTorch, and forks a child for each program that the keeper sends. It never uses CUDA,
which does not survive a fork.

    fork_server.py CHANNEL"""
import gc
import json
import os
import runpy
import select
import socket
import sys

import bounded
import forks
import processes

POLL = 0.01  # seconds between looks at children


class Server:
    def __init__(self, channel):
        self.channel = channel
        self.clients = {}  # the stand-in of each child, by its pid

    def finish(self, pid, status):
        """Tells how a child ended; nothing of it stays."""
        client = self.clients.pop(pid)
        processes.kill(pid)
        try:
            client.send(str(status).encode())
        except OSError:
            pass  # it is gone
        client.close()

    def look_at_children(self):
        for pid in list(self.clients):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self.finish(pid, status)

    def end_children_of(self, gone):
        """A stand-in sends nothing: what can be read of it is its end."""
        for pid, client in self.clients.items():
            if client in gone:
                processes.kill(pid)

    def begin(self):
        """Forks for the next request. In the child it returns (request, files)."""
        data, found = forks.receive(self.channel, 1 + forks.FILES)
        if not data:
            sys.exit(0)
        client, *files = found
        client = socket.socket(fileno=client)
        request = json.loads(data)
        client.send(b"begins")
        pid = os.fork()
        if pid == 0:
            for other in (self.channel, client, *self.clients.values()):
                other.close()
            return request, files
        for file in files:
            os.close(file)
        self.clients[pid] = client
        return None

    def serve(self):
        """Returns in children alone."""
        while True:
            ready, _, _ = select.select([self.channel, *self.clients.values()], [], [],
                                        POLL if self.clients else None)
            self.look_at_children()
            self.end_children_of(ready)
            if self.channel in ready:
                child = self.begin()
                if child is not None:
                    return child


def become(request, files):
    """Makes this process the program that was asked for."""
    os.setsid()
    processes.count_as_child(request["pid"])
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    sys.argv = request["words"]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))


def uses_cuda():
    """True if a file of the driver is open."""
    files = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return any(os.readlink(file).startswith("/dev/nvidia") for file in files
               if os.path.lexists(file))


def main():
    bounded.limit_self()
    import torch  # noqa: F401
    if uses_cuda():
        sys.exit("importing PyTorch has opened the driver: no fork survives that")
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        child = Server(channel).serve()
    become(*child)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
