"""A CUDA program in plain ctypes, run by test_package.py: what the package `spillway` says of it.

    programs.py PART        prints JSON
"""
import contextlib
import ctypes
import json
import os
import sys
import threading

import spillway

MIB = 1 << 20


class Cuda:
    def __init__(self):
        self.runtime = ctypes.CDLL("libcudart.so.13")
        self.runtime.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
        self.runtime.cudaFree.argtypes = [ctypes.c_void_p]

    def take(self, size):
        address = ctypes.c_void_p()
        assert self.runtime.cudaMalloc(ctypes.byref(address), size) == 0
        return address

    def free(self, address):
        assert self.runtime.cudaFree(address) == 0


def stats():
    before = spillway.stats()
    cuda = Cuda()
    block = cuda.take(5 * MIB)
    cuda.free(cuda.take(3 * MIB))
    held = spillway.stats()
    cuda.free(block)
    return {"loaded": spillway.loaded(), "before": before, "held": held, "after": spillway.stats()}


def nothing():
    """Without the object."""
    with spillway.mark("a"), spillway.paused() as paused:
        assert not paused
        spillway.step()
    report = spillway.report()
    return {"loaded": spillway.loaded(), "stats": spillway.stats(), "report": bool(report),
            "path": report.path, "html": report._repr_html_()}


def pauses():
    cuda = Cuda()
    block = cuda.take(64 * MIB)

    def held():
        device = spillway.stats()["devices"][0]
        return [device["committed_bytes"] // MIB, device["host_used_bytes"] // MIB]
    before = held()
    with spillway.paused() as done:
        within = held()
    after = held()
    cuda.free(block)
    return {"done": done, "before": before, "within": within, "after": after}


def tags():
    """The same line under several tags, and on a thread without one."""
    cuda = Cuda()
    blocks = []

    def take(times):
        for _ in range(times):
            blocks.append(cuda.take(4 * MIB))

    def host():
        return spillway.stats()["devices"][0]["host_used_bytes"] // MIB

    def use(name, inner):
        with spillway.tag(name) if name else contextlib.nullcontext():
            if inner:
                use(inner, None)
            take(1)
    for _ in range(4):  # so often that the stacks are known
        for name, inner in (("weights", None), (None, None), ("kv cache é", None),
                            ("weights", "kv cache é")):
            use(name, inner)
    with spillway.tag("weights"):
        thread = threading.Thread(target=take, args=(1,))
        thread.start()
        thread.join()
    wrong = []
    for name in "", "x" * 64, "é" * 32, "a\nb", "a\0":
        try:
            with spillway.tag(name):
                pass
        except ValueError:
            wrong.append(name)
    try:
        spillway.pause("rule", tag="tag")
    except ValueError:
        wrong.append("both")
    with spillway.tag("x" * 63), spillway.tag("é" * 31):
        pass
    done, moved = [spillway.pause(tag="nothing"), spillway.resume(tag="nothing")], []
    with spillway.paused(tag="weights") as paused:
        done.append(paused)
        moved.append(host())
        done.append(spillway.pause(tag="kv cache é"))
        moved.append(host())
    moved.append(host())
    done.append(spillway.resume(tag="kv cache é"))
    moved.append(host())
    for block in blocks:
        cuda.free(block)
    return {"wrong": wrong, "done": done, "moved": moved}


@spillway.mark("whole")
def work(cuda):
    for _ in range(3):
        spillway.step()
        block = cuda.take(2 * MIB)
        with spillway.mark("eval é"):
            cuda.free(cuda.take(8 * MIB))
        cuda.free(block)


def marks():
    cuda = Cuda()
    cuda.free(cuda.take(MIB))  # marks count from the first use of CUDA on
    work(cuda)
    threads = [threading.Thread(target=work, args=(cuda,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        with spillway.mark("failing"):
            raise KeyError
    except KeyError:
        pass
    cuda.free(cuda.take(32 * MIB))  # in no part
    with spillway.mark(f"long {'x' * 4000}"):
        pass
    spillway._session.library.call("spillway_mark_begin", b"open")
    return {"null": spillway._session.library.call("spillway_mark_begin", None)}


def report():
    cuda = Cuda()
    first, second = cuda.take(5 * MIB), spillway.report()
    cuda.take(7 * MIB)
    again = spillway.report(output=os.environ["PAGE"], height=333)
    missing = spillway.report("/no/such/file")
    cuda.free(first)
    return {"recording": spillway.stats()["recording"], "path": str(second.path),
            "shown": second._repr_html_(), "again": str(again.path),
            "frame": again._repr_html_(), "missing": [bool(missing), missing.problem]}


def notebook():
    """The extension in a shell that has what IPython's has."""
    class Shell:
        def register_magic_function(self, function, magic_kind, magic_name):
            assert (magic_kind, magic_name) == ("line_cell", "spillway")
            self.magic = function

        def run_cell(self, cell):
            exec(cell, {"cuda": cuda, "MIB": MIB})

    shell = Shell()
    spillway.load_ipython_extension(shell)
    if not spillway.loaded():
        shell.magic("")
        return {}
    cuda = Cuda()
    shell.magic("step")
    shell.magic("")
    shell.magic("in the cell", "cuda.take(6 * MIB)")
    shell.magic("")
    shell.magic("what")
    return {"report": str(shell.magic("report").path)}


if __name__ == "__main__":
    print(json.dumps({"result": globals()[sys.argv[1]]()}))
