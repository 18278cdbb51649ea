"""The setting of a check: where spillway is, and how a command runs bare and under it.

On the simulated GPU both go through `spillway sim`; on a real one spillway is preloaded, as users
do it."""
import dataclasses
import glob
import json
import os
import pathlib
import sys
import sysconfig

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Programs of these folders of build/, and of one folder of the bundle.
PROGRAM_FOLDERS = ("gpu-check", "tests/gpu", "tests/preload",
                   "tests/preload/sharing", "tests/spill", "tests/tools")


@dataclasses.dataclass(frozen=True)
class Setting:
    """root: build or the bundle; simulated: on the simulated GPU, with so much memory; tiny: as
    little work as shows that a row runs; forks: the stand-in for Python that forks programs from
    one that has imported PyTorch, or nothing."""
    root: str
    simulated: bool = False
    memory: str = "4GiB"
    tiny: bool = False
    forks: str = ""

    @classmethod
    def load(cls, path):
        return cls(**json.loads(pathlib.Path(path).read_text()))

    def save(self, path):
        pathlib.Path(path).write_text(json.dumps(dataclasses.asdict(self)))

    def program(self, name):
        """The path of a test program, or None if it was not built or bundled."""
        for folder in PROGRAM_FOLDERS:
            path = pathlib.Path(self.root) / folder / name
            if os.access(path, os.X_OK):
                return path
        return None

    def python(self):
        """The Python for scripts: this one, or for the simulated GPU that with a PyTorch."""
        own = SOURCE / ".venv/bin/python"
        return str(own) if self.simulated and own.exists() else sys.executable

    def environment(self):
        """That of the caller without settings of spillway or PyTorch's allocator."""
        kept = "SPILLWAY_SIM_" if self.simulated else " "
        env = {key: value for key, value in os.environ.items()
               if key != "LD_PRELOAD" and not key.startswith("PYTORCH_")
               and (key.startswith(kept) or not key.startswith("SPILLWAY"))}
        if self.simulated:
            env.pop("LD_LIBRARY_PATH", None)
        else:
            folders = [*runtime_folders(), env.get("LD_LIBRARY_PATH", "")]
            env["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
        env["PYTHONFAULTHANDLER"] = "1"
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        return env

    def command(self, command, preload):
        """The words that run a command, bare or under spillway, and what the environment gets."""
        command = [str(word) for word in command]
        if self.simulated:
            launcher = [f"{self.root}/spillway", "sim", "--memory", self.memory]
            return [*launcher, *([] if preload else ["--no-pool"]), "--", *command], {}
        return command, {"LD_PRELOAD": f"{self.root}/libspillway.so"} if preload else {}


def runtime_folders():
    """Folders with NVIDIA's runtime: that of PyTorch's wheels, and that of a toolkit."""
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    places = [f"{package}/nvidia/*/lib" for package in packages] + ["/usr/local/cuda*/lib64"]
    return sorted({os.path.dirname(path) for place in places
                   for path in glob.glob(place + "/libcudart.so.13")})
