#!/usr/bin/env python3
"""Hands requests to servers, and starts them. Ends, with all of them, when its stdin does.

    fork_keeper.py LISTENER PYTHON"""
import collections
import json
import os
import select
import socket
import subprocess
import sys

import forks
import processes

HERE = forks.HERE
MOST_STARTS = 2  # of the servers of one environment: what dies each time would take time each time


class Keeper:
    def __init__(self, python):
        self.python = python
        self.servers = {}  # the channel of each, by its environment
        self.starts = collections.Counter()

    def start(self, key, environment):
        self.starts[key] += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            subprocess.Popen([self.python, "-B", HERE / "fork_server.py", str(theirs.fileno())],
                             env=environment, stdin=subprocess.DEVNULL,
                             pass_fds=[theirs.fileno()])
        print(f"server {self.starts.total()}", flush=True)
        return ours

    def hand_on(self, request, files):
        """To the server of its environment, to a new one if that has died."""
        environment = forks.early(json.loads(request)["environment"])
        key = json.dumps(environment, sort_keys=True)
        while key in self.servers or self.starts[key] < MOST_STARTS:
            if key not in self.servers:
                self.servers[key] = self.start(key, environment)
            try:
                socket.send_fds(self.servers[key], [request], files)
                print(f"program {json.loads(request)['words'][0]}", flush=True)
                return
            except OSError:
                self.servers.pop(key).close()

    def serve(self, client):
        files = []
        try:
            request, files = forks.receive(client, forks.FILES)
            if request and len(files) == forks.FILES:
                self.hand_on(request, [client.fileno(), *files])
        except (OSError, ValueError, KeyError) as error:
            print(error, flush=True)
        finally:
            for file in files:
                os.close(file)


def main():
    keeper = Keeper(sys.argv[2])
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        while True:
            ready, _, _ = select.select([sys.stdin, listener], [], [])
            if sys.stdin in ready:
                break
            client, _ = listener.accept()
            with client:
                keeper.serve(client)
    processes.kill(-1, os.getpid())


if __name__ == "__main__":
    main()
