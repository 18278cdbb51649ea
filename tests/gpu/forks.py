"""Python programs that are forked from one process that has imported PyTorch, which takes longer
than most of them run.

A stand-in for Python (fork_client.py) sends a program's words, environment and output to the keeper
(fork_keeper.py), which hands them to a server (fork_server.py): one for each environment that
matters while PyTorch is loaded. The server forks, and the child becomes the program. Without an
answer the stand-in becomes Python itself."""
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REQUEST_BYTES = 192 << 10  # what a socket takes at once
FILES = 3                  # stdin, stdout, stderr
# Variables that are read when a program uses CUDA, or by the program itself: a server serves all of
# their values. Each value of another variable has a server of its own.
LATE = re.compile(r"(SPILLWAY_(?!MODE$|SIM_)|NCCL_|CUDA_|CUBLAS_|TRITON_|TORCH_DIST_|STEPS_OUTPUT$|"
                  r"BUILD_ROOT$|PWD$|OLDPWD$|SHLVL$|_$)")


def early(environment):
    """What of an environment matters while PyTorch is loaded."""
    return {key: value for key, value in environment.items() if not LATE.match(key)}


def pack(words):
    """The request to run Python with these words, as this process would."""
    return json.dumps({"words": words, "folder": os.getcwd(), "pid": os.getpid(),
                       "environment": dict(os.environ)}).encode()


def receive(channel, files):
    """(request as bytes, files) that come by a channel; (b"", []) at its end."""
    data, found, _, _ = socket.recv_fds(channel, REQUEST_BYTES, files)
    return data, found


class Keeper:
    """Starts the keeper, whose stand-in is `python`. It ends with this process."""

    def __init__(self, folder, python):
        folder.mkdir()
        path = folder / "socket"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(path))
        listener.listen(64)
        with listener, open(folder / "log", "wb") as log:
            self.child = subprocess.Popen(
                [sys.executable, "-B", HERE / "fork_keeper.py", str(listener.fileno()), python],
                stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[listener.fileno()],
                start_new_session=True)
        self.python = folder / "python"
        words = [sys.executable, "-I", "-S", "-B", HERE / "fork_client.py", path, python]
        self.python.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
        self.python.chmod(0o755)

    def close(self):
        self.child.stdin.close()
        self.child.wait()
