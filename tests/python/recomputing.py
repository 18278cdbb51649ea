"""Calls modules of the stand-in for PyTorch, and prints in how many calls they were checkpointed.

    recomputing.py [WAY]"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "standin"))


def work(name="main"):
    import torch

    class Leaf(torch.nn.Module):
        def forward(self, value):
            return value + 1

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.leaf = Leaf()

        def forward(self, value):
            return self.leaf(value)

    model = torch.nn.Sequential(Block(), Block(), Block())
    values = model(1), model(1)
    print(name, torch.checkpoint.calls, flush=True)
    if values != (4, 4):
        sys.exit(f"wrong values: {values}")


def changes():
    """What this process has that it would not have without the companion."""
    import torch
    found = [name for name in sys.modules if "spillway" in name]
    found += ["hook"] * len(torch.nn._hooks)
    found += ["call"] * (torch.nn.Module.__call__.__module__ != "torch.nn" or
                         hasattr(torch.nn.Module.__call__, "spillway"))
    found += ["spec"] * (type(torch.__spec__).__module__ not in ("_frozen_importlib",
                                                                 "importlib._bootstrap"))
    print(sorted(found))


def main():
    way = sys.argv[1] if len(sys.argv) > 1 else "plain"
    if way == "thread":
        import threading
        thread = threading.Thread(target=work, args=("thread",))
        thread.start()
        thread.join()
    elif way == "fork":
        work()
        child = os.fork()
        if child == 0:
            work("child")
            os._exit(0)
        os.waitpid(child, 0)
    elif way == "fork first":
        child = os.fork()
        if child == 0:
            work("child")
            os._exit(0)
        os.waitpid(child, 0)
    elif way in ("spawn", "forkserver"):
        import multiprocessing
        process = multiprocessing.get_context(way).Process(target=work, args=("worker",))
        process.start()
        process.join()
    elif way == "program":
        subprocess.run([sys.executable, *sys.argv[2:], __file__], check=True)
    elif way == "other package":
        import ctypes
        getattr(ctypes.PyDLL(None), "PyInit__C", None)
        work()
    elif way == "other package later":
        import torch
        torch.look_up()
        work()
    elif way == "again":
        os.environ["STANDIN_FAILS"] = "yes"
        try:
            import torch  # noqa: F401
        except ImportError:
            del os.environ["STANDIN_FAILS"]
        work()
    else:
        work()
    if way == "changes":
        changes()


if __name__ == "__main__":
    main()
