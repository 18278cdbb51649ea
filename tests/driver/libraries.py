"""NVIDIA's driver libraries and runtimes that the tests of this folder use: which there are, where
fetch.py puts them, and how a program finds them.

As a command: prints the versions of the drivers, or with status 77 why there are none."""
import collections
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDER = SOURCE / ".driver"
REASON = FOLDER / "reason"  # why fetch.py could not get all of it

# A branch of the driver that one of Debian's suites holds. `cuda` is the newest version of CUDA
# that it serves, as cuDriverGetVersion tells it; `suites` are the suites that may hold it, from
# the main archive or the security archive; `packages` are the driver and the library of NVML.
Branch = collections.namedtuple("Branch", "number cuda packages suites")

# From the oldest that the PyTorch wheels of CUDA 12 support (NVIDIA's release notes of CUDA 12:
# 525) to the newest that Debian holds.
BRANCHES = [
    Branch("525", 12000, ("libnvidia-tesla-cuda1", "libnvidia-tesla-ml1"), ("bookworm",)),
    Branch("535", 12020, ("libcuda1", "libnvidia-ml1"), ("bookworm", "bookworm-security")),
    Branch("550", 12040, ("libcuda1", "libnvidia-ml1"), ("trixie",)),
    Branch("555", 12050, ("libcuda1", "libnvidia-ml1"), ("experimental",)),
]

# The runtimes, as requirements of pip. For each driver there is the one of its own version of CUDA;
# 12.6 is that of PyTorch's cu126 wheel; 12.9 is the newest of CUDA 12, and 13.0 belongs to drivers
# of branch 580. The last two have the static library.
RUNTIMES = {
    "12.0": "nvidia-cuda-runtime-cu12==12.0.146",
    "12.2": "nvidia-cuda-runtime-cu12==12.2.140",
    "12.4": "nvidia-cuda-runtime-cu12==12.4.127",
    "12.5": "nvidia-cuda-runtime-cu12==12.5.82",
    "12.6": "nvidia-cuda-runtime-cu12==12.6.77",
    "12.9": "nvidia-cuda-runtime-cu12==12.9.79",
    "13.0": "nvidia-cuda-runtime==13.0.96",
}

# The PyTorch wheel of PyPI that is built for CUDA 12.6, which all of these drivers serve; PyPI has
# one wheel for each release, and newer ones are for newer versions of CUDA.
TORCH = "torch==2.7.1"
TORCH_PYTHON = FOLDER / "torch/bin/python"


def driver_folder(branch):
    return FOLDER / f"driver-{branch.number}"


def runtime_folder(version):
    return FOLDER / f"cudart-{version}"


def runtime_of(branch):
    """The version of the runtime that belongs to a driver."""
    return f"{branch.cuda // 1000}.{branch.cuda % 1000 // 10}"


def drivers():
    """The branches that are there."""
    return [branch for branch in BRANCHES if (driver_folder(branch) / "libcuda.so.1").exists()]


def runtimes():
    """The versions of the runtime that are there."""
    return [version for version in RUNTIMES if list(runtime_folder(version).glob("libcudart.so.*"))]


def torch_is_there():
    """True if the wheel was installed as a whole."""
    return (FOLDER / "torch/complete").exists()


def full_version(branch):
    """The driver's whole version, which is part of its file's name ("535.309.01")."""
    return (driver_folder(branch) / "libcuda.so.1").resolve().name.removeprefix("libcuda.so.")


def why_not():
    """A line that tells why there is no driver library."""
    reason = REASON.read_text().strip() if REASON.exists() else "scripts/setup --driver gets them"
    return f"skipped: no driver libraries of NVIDIA in {FOLDER.name}/: {reason}"


if __name__ == "__main__":
    found = [full_version(branch) for branch in drivers()]
    print(" ".join(found) or why_not())
    sys.exit(0 if found else 77)
