"""Common parts of the benchmarks: paths, running programs, and printing results."""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
JSON = "--json" in sys.argv
PROGRAMS = ROOT / "tests/bench"
OBJECT = ROOT / "libspillway.so"
COMMAND = ROOT / "spillway"
SIM = ROOT / "sim"

MIB = 1 << 20
GIB = 1 << 30
GRANULE = 2 * MIB
LARGE = 64 * GIB  # a simulated device on which everything fits

# The durations of driver calls, in microseconds: the simulated counts are exact, these are
# published measurements of others (README.md names them). Calls on virtual memory cost this for
# each chunk that they cover, and PER_MIB for what a chunk has beyond 2 MiB. A host wait is charged
# as a short kernel; the device's remaining work is in no figure.
COSTS = {
    "published A": {
        "cuMemAlloc": 200, "cuMemFree": 75, "cuMemCreate": 57, "cuMemMap": 2,
        "cuMemSetAccess": 56, "cuMemUnmap": 30, "cuMemRelease": 24, "cuEventRecord": 2,
        "cuEventQuery": 1, "cuStreamWaitEvent": 2, "cuEventSynchronize": 50,
        "cuStreamSynchronize": 50, "cuCtxSynchronize": 50,
    },
    "published B": {
        "cuMemAlloc": 200, "cuMemFree": 75, "cuMemCreate": 193, "cuMemMap": 1.5,
        "cuMemSetAccess": 36, "cuMemUnmap": 26, "cuMemRelease": 24, "cuEventRecord": 2,
        "cuEventQuery": 1, "cuStreamWaitEvent": 2, "cuEventSynchronize": 50,
        "cuStreamSynchronize": 50, "cuCtxSynchronize": 50,
    },
}

PER_MIB = {"cuMemCreate": 0.011, "cuMemMap": 0, "cuMemSetAccess": 0.041, "cuMemUnmap": 0.004,
           "cuMemRelease": 0.356}


def call_count(calls):
    return sum(count for name, count in calls.items() if name in COSTS["published A"])


def of_chunks(name, cost, calls):
    """The time of the calls of a function on virtual memory."""
    chunks = calls[name + " chunks"]
    return cost * chunks + PER_MIB[name] * (calls[name + " bytes"] - chunks * GRANULE) / MIB


def microseconds(calls, table="published A", per="chunk"):
    """`per` range: a call costs the same for a range of any length."""
    return sum(of_chunks(name, cost, calls) if per == "chunk" and name in PER_MIB
               else cost * calls.get(name, 0) for name, cost in COSTS[table].items())


# ---- running ----

def clean_environment(**options):
    """Nothing of spillway's or PyTorch's from outside; options without the prefix SPILLWAY_."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("SPILLWAY", "PYTORCH_")) and
           key not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    env.update({"SPILLWAY_" + key: str(value) for key, value in options.items()})
    return env


@dataclasses.dataclass
class Run:
    """The result of a program on the simulated GPU."""
    ran: bool
    stdout: str
    stderr: str
    device: dict  # of the statistics file; empty without the pool

    @property
    def lines(self):
        return [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]


def simulate(command, memory, flags=(), settings=None, **options):
    """Runs a command on a simulated device of so many bytes, with spilling off unless said."""
    env = clean_environment(**{"SPILL": "off", "SUMMARY": "off", **options})
    env.update(settings or {})
    with tempfile.TemporaryDirectory() as folder:
        stats = pathlib.Path(folder) / "stats"
        if "--no-pool" not in flags:
            env["SPILLWAY_STATS"] = str(stats)
        done = subprocess.run(
            [str(word) for word in (COMMAND, "sim", "--memory", memory, *flags, "--", *command)],
            env=env, capture_output=True, text=True, check=False)
        device = json.loads(stats.read_text())["devices"][0] if stats.exists() else {}
    return Run(done.returncode == 0, done.stdout, done.stderr, device)


def smallest(runs, live, most, step=GRANULE):
    """The fewest bytes of memory, in whole steps, with which `runs(bytes)` is true: found by
    bisection between the live peak and `most` bytes, which suffice."""
    low, high = live // step - 1, -(-most // step)
    while high - low > 1:
        middle = (low + high) // 2
        if runs(middle * step):
            high = middle
        else:
            low = middle
    return high * step


def chosen(name, all_of_them):
    """The words of an environment variable, separated by commas, or all of them."""
    given = os.environ.get(name)
    return given.split(",") if given else all_of_them


def mib(count):
    return count / MIB if count else None


def find_torch():
    """The interpreter of a PyTorch that the simulated GPU can serve, or None after a line."""
    sys.path.insert(0, str(HERE.parent / "torch"))
    import wheel  # pylint: disable=import-outside-toplevel
    interpreter, reason = wheel.find()
    if reason:
        print(f"without PyTorch: {reason}", file=sys.stderr)
    return interpreter


# ---- timing ----

def environment(preload, sim=False):
    """A small one, of the same size bare and under spillway."""
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env["SPILLWAY_SUMMARY"] = "off"
    env["LD_PRELOAD" if preload else "NO_PRELOAD"] = str(OBJECT)
    if sim:
        env["LD_LIBRARY_PATH"] = str(SIM)
    return env


def run(command, preload, sim=False):
    """A program's output as {name: number}; it prints "name number" lines."""
    done = subprocess.run([str(word) for word in command], env=environment(preload, sim),
                          stdout=subprocess.PIPE, text=True, check=True)
    return {name: float(number) for name, number in
            (line.rsplit(" ", 1) for line in done.stdout.splitlines())}


def compare(command, repeats, sim=False):
    """The best bare and the best under spillway, in turns so that both see the same machine."""
    bare, pool = [], []
    for _ in range(repeats):
        bare.append(run(command, False, sim))
        pool.append(run(command, True, sim))

    def best(results):
        return {name: min(result[name] for result in results) for name in results[0]}
    return best(bare), best(pool)


# ---- printing ----

class Table:
    """Rows of named cells, printed as they come: aligned, or a JSON object each with --json."""

    def __init__(self, **columns):
        """Names of columns and their widths; text to the left, numbers to the right."""
        self.columns = columns
        if not JSON:
            print("  ".join(f"{name.replace('_', ' '):>{abs(width)}}" if width > 0 else
                            f"{name.replace('_', ' '):<{-width}}"
                            for name, width in columns.items()))

    @staticmethod
    def text(value):
        if value is None:
            return "-"
        return f"{value:.2f}" if isinstance(value, float) else str(value)

    def row(self, **cells):
        if JSON:
            print(json.dumps(cells), flush=True)
            return
        print("  ".join(f"{self.text(cells.get(name)):>{width}}" if width > 0 else
                        f"{self.text(cells.get(name)):<{-width}}"
                        for name, width in self.columns.items()), flush=True)


def report(rows):
    """Rows of (what, value, unit, bound or None): a table, or JSON lines with --json."""
    for what, value, unit, bound in rows:
        if JSON:
            print(json.dumps({"what": what, "value": round(value, 3), "unit": unit,
                              "bound": bound}))
        else:
            verdict = "" if bound is None else f"   (bound {bound:g} {unit}" + (
                ")" if value <= bound else ", EXCEEDED)")
            print(f"{what:<52} {value:10.2f} {unit}{verdict}")
