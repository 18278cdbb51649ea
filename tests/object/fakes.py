"""Runs programs with the stand-ins for PyTorch's libraries."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../preload"))
import harness

FOLDER = harness.ROOT / "tests/object"
LIBRARIES = FOLDER / "torch/lib"
TENSORS = r"mode tensor \(the pool serves each tensor of PyTorch 2\.11\.0\)$"
SPILLED = r"are on the host now"


def program(name):
    return FOLDER / f"object_{name}"


class Case(harness.Case):
    """The libraries are found as in a wheel, by a path of their own."""
    libraries = LIBRARIES

    def run_command(self, command, env, timeout=300):
        paths = [env.get("LD_LIBRARY_PATH"), str(self.libraries)]
        env = env | {"LD_LIBRARY_PATH": ":".join(filter(None, paths))}
        return super().run_command(command, env, timeout)

    def own_libraries(self, library="c10_cuda", version="__version__ = '2.11.0+fake'\n"):
        """Another folder of libraries; without a version if that is None."""
        root = self.folder / f"torch-{next(self.numbers)}"
        self.libraries = root / "lib"
        self.libraries.mkdir(parents=True)
        shutil.copy(LIBRARIES / "libc10.so", self.libraries)
        shutil.copy(LIBRARIES / f"lib{library}.so", self.libraries / "libc10_cuda.so")
        if version is not None:
            (root / "version.py").write_text(version)
