#!/usr/bin/env python3
"""Runs features of PyTorch (features/__init__.py), each in a process of its own, and prints the
outcome of each as one JSON object a line.

    run_features.py [--fresh] NAME...

A process is a copy of this one, made before CUDA is initialised, since to import PyTorch takes
seconds, and most end before Python takes PyTorch apart, which takes half a second; with --fresh it
is a new one, which ends as ever. Outcome: {"feature", "status", "figures", "text"}; status is
"ok", "absent", "error", "exit N" when the interpreter ended with N after the feature,
"signal NAME" or "hangs".
"""
import atexit
import ctypes
import gc
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from features import Absent, catalogue

SECONDS = 120
CHILD = "--child"


def outcome_of(feature):
    """Runs it in this process."""
    try:
        figures = {key: str(value) for key, value in feature.call().items()}
        return {"status": "ok", "figures": figures}
    except Absent as reason:
        return {"status": "absent", "text": str(reason)}
    except BaseException as error:
        traceback.print_exc()
        line = str(error).strip().partition("\n")[0]
        return {"status": "error", "text": f"{type(error).__name__}: {line}"[:200]}


def be_child(feature, folder):
    """Runs the feature and leaves its outcome in the folder. The interpreter then ends as ever."""
    os.chdir(folder / "empty")
    outcome = outcome_of(feature)
    (folder / "outcome").write_text(json.dumps(outcome))


def end_soon():
    """Ends the process as C does, without the time in which Python takes PyTorch apart. Python's
    lock is held, since what is freed then may be Python's."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    ctypes.PyDLL(None).exit(0)


def start(feature, folder, fresh):
    """The number of the child's process; in the child itself None."""
    (folder / "empty").mkdir()
    output = os.open(folder / "output", os.O_CREAT | os.O_WRONLY, 0o600)
    if fresh:
        command = [sys.executable, __file__, CHILD, feature.name, str(folder)]
        pid = subprocess.Popen(command, stdout=output, stderr=output,
                               stdin=subprocess.DEVNULL, start_new_session=True).pid
        os.close(output)
        return pid
    pid = os.fork()
    if pid != 0:
        os.close(output)
        return pid
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    be_child(feature, folder)
    return None


def wait(pid):
    """The status that the process ended with, or None if it hung and was killed."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def judge(status, folder):
    """The outcome of a process that has ended."""
    path = folder / "outcome"
    outcome = json.loads(path.read_text()) if path.exists() else {}
    code = None if status is None else os.waitstatus_to_exitcode(status)
    if code is None:
        outcome["status"] = "hangs"
    elif code < 0:
        outcome["status"] = f"signal {signal.Signals(-code).name}"
    elif code != 0 or not outcome:
        outcome["status"] = f"exit {code}"
    if outcome["status"] not in ("ok", "absent"):
        outcome["output"] = (folder / "output").read_text(errors="replace")[-3000:]
    return outcome


def main(argv):
    known = catalogue()
    if argv[:1] == [CHILD]:
        be_child(known[argv[1]], pathlib.Path(argv[2]))
        return
    fresh = argv[:1] == ["--fresh"]
    names = argv[fresh:]
    import torch
    if not fresh and len(names) > 9:
        import torch._dynamo  # takes seconds, too; as far as CUDA is not asked for devices
        import torch.distributed
    gc.freeze()
    for name in names:
        begun = time.monotonic()
        reason = known[name].why_absent(torch.__version__)
        if reason:
            outcome = {"status": "absent", "text": reason}
        else:
            folder = pathlib.Path(tempfile.mkdtemp())
            pid = start(known[name], folder, fresh)
            if pid is None and known[name].ends:
                return
            if pid is None:
                end_soon()
            outcome = judge(wait(pid), folder)
            shutil.rmtree(folder, ignore_errors=True)
        seconds = round(time.monotonic() - begun, 2)
        print(json.dumps({"feature": name, **outcome, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
