"""Runs a program with PyTorch on the simulated GPU, or this machine's, and reads what it left."""
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(os.environ["BUILD_ROOT"])
HERE = pathlib.Path(__file__).resolve().parent
MEMORY = "24GiB"
# Instead of the simulated one; set once, before anything runs.
on_gpu = False


def steps_of(script, *arguments):
    """The arguments of Python that run a script of this folder and note its figures."""
    return [str(HERE / "steps.py"), str(HERE / script), *arguments]


def launcher(flags):
    """`spillway sim` with these flags. On a GPU `spillway run` with those that it has, or nothing
    for a plain run."""
    if not on_gpu:
        return [str(ROOT / "spillway"), "sim", "--memory", MEMORY, *flags, "--"]
    if "--no-pool" in flags:
        return []
    kept = [word for name, value in zip(flags[::2], flags[1::2])
            if name not in ("--devices", "--seed", "--capture-vmm") for word in (name, value)]
    return [str(ROOT / "spillway"), "run", *kept, "--"]


class Run:
    """One run of `command` under the launcher with these flags and additional variables.

    status, stdout, stderr; steps: what steps.py noted, and stats: the statistics file, each by the
    rank of the process; log: the lines of the simulated driver's call log, if it was asked for."""

    def __init__(self, command, flags=(), settings=None, log=False):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("SPILLWAY", "PYTORCH_")) and
               (on_gpu or not key.startswith("LD_"))}
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            env["STEPS_OUTPUT"] = str(folder / "steps-%r")
            env.update(settings or {})
            flags = list(flags)
            if "--no-pool" not in flags:
                flags += ["--stats", str(folder / "stats-%r")]
            if log:
                flags += ["--sim-log", str(folder / "log")]
            done = subprocess.run([*launcher(flags), *command], env=env, text=True,
                                  capture_output=True, stdin=subprocess.DEVNULL)
            self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
            self.steps = {rank: [json.loads(line) for line in text.splitlines()]
                          for rank, text in self.read(folder, "steps")}
            self.stats = self.statistics(folder)
            self.log = (folder / "log").read_text().splitlines() if log else []

    def statistics(self, folder):
        """By rank. A process that the program started, such as a compiler's, may have taken the
        name of the file first; then the program's own ends with its number."""
        found = {rank: json.loads(text) for rank, text in self.read(folder, "stats")}
        for rank, steps in self.steps.items():
            own = folder / f"stats-{rank}.{steps[-1].get('pid') if steps else None}"
            if own.exists():
                found[rank] = json.loads(own.read_text())
        return found

    @staticmethod
    def read(folder, kind):
        """By rank; torchrun's own process comes later than those it starts, and is not read."""
        ranks = {path.name.partition("-")[2]: path for path in folder.glob(kind + "-*")}
        return [(rank, ranks[rank].read_text()) for rank in sorted(ranks) if rank.isdigit()]

    def said(self):
        """The lines that spillway wrote to stderr, without out-of-memory reports."""
        lines, in_report = [], False
        for line in self.stderr.splitlines():
            if not line.startswith("spillway") or (in_report and line.startswith("spillway:   ")):
                continue
            in_report = line.startswith("spillway: out of memory on device ")
            lines.append(line)
        return lines

    def unexpected(self):
        """Lines of stderr that are not spillway's own."""
        return [line for line in self.stderr.splitlines() if not line.startswith("spillway:")]
