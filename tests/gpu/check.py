#!/usr/bin/env python3
"""Runs spillway against a real driver and writes what it found as one Markdown page.

    check.py ROOT [--output FILE]     ROOT: build or dist/spillway

Programs are compiled here with nvcc, so the bundle is enough; without nvcc those of build/ are
taken. Every row is: what was done, the result, figures. A row that fails does not stop the next.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PRELOAD = SOURCE / "tests/preload"
TOOLS = SOURCE / "tests/tools"
SECONDS = 560  # for everything together
TORCH = SOURCE / "tests/torch/gpt2_like.py"
CORPUS = SOURCE / "tests/torch"
AT_ONCE = 6  # scripts of the corpus, whose times mean nothing
SPILL_LIMITS = (90, 75)  # of the live peak, in percent
TRAINING = []  # further arguments of the training that spills
LATER = (("policy files", "only that of the static spill is tried"),)


class Check:
    def __init__(self, root):
        self.root = root.resolve()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="spillway-gpu-check-"))
        self.nvcc = shutil.which("nvcc") or (
            "/usr/local/cuda/bin/nvcc" if os.path.exists("/usr/local/cuda/bin/nvcc") else None)
        self.rows = []
        self.deadline = time.monotonic() + SECONDS

    def row(self, what, result, figures=""):
        line = f"| {what} | {result} | {figures.replace(chr(10), '; ').replace('|', '/')} |"
        print(line, flush=True)
        self.rows.append(line)

    def environment(self, preload, **options):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("SPILLWAY", "PYTORCH_"))}
        env.pop("LD_PRELOAD", None)
        if self.nvcc:
            toolkit = pathlib.Path(self.nvcc).resolve().parents[1]
            env["LD_LIBRARY_PATH"] = ":".join(
                [str(toolkit / "lib64"), env.get("LD_LIBRARY_PATH", "")]).strip(":")
        if preload:
            env["LD_PRELOAD"] = str(self.root / "libspillway.so")
            env["SPILLWAY_SUMMARY"] = "off"
        return env | options

    def run(self, command, preload=False, timeout=120, **options):
        """(status, stdout, stderr, statistics, seconds); a program that hangs has status 124."""
        stats = self.work / "stats.json"
        stats.unlink(missing_ok=True)
        env = self.environment(preload, **options)
        if preload:
            env["SPILLWAY_STATS"] = str(stats)
        begin = time.monotonic()
        timeout = min(timeout, max(1, self.deadline - begin))
        try:
            done = subprocess.run([str(word) for word in command], env=env, capture_output=True,
                                  text=True, errors="replace", timeout=timeout)
            status, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            status, out, err = 124, "", f"still running after {timeout:.0f} s"
        except OSError as error:
            status, out, err = 127, "", str(error)
        seconds = time.monotonic() - begin
        found = json.loads(stats.read_text()) if stats.exists() else None
        return status, out, err, found, seconds

    def compile(self, name, sources, *flags):
        """The path of a program, built here or taken from build/; None when there is none."""
        target = self.work / name
        if self.nvcc:
            stubs = pathlib.Path(self.nvcc).resolve().parents[1] / "lib64/stubs"
            done = subprocess.run(
                [self.nvcc, "-O2", "-Xcompiler", "-fno-strict-aliasing,-D_GNU_SOURCE,-pthread",
                 "-o", str(target), *map(str, sources), *flags, f"-L{stubs}", "-ldl"],
                capture_output=True, text=True)
            if done.returncode == 0:
                return target
            self.row(f"compile {name}", "FAILED", last_line(done.stderr))
            return None
        for folder in ("tests/preload", "tests/tools"):
            if (SOURCE / "build" / folder / name).exists():
                return SOURCE / "build" / folder / name
        return None

    def compare(self, what, program, *arguments, on_purpose=r"$^", counted=True):
        """A program bare and under spillway: the same output, but for the lines that match
        `on_purpose`, and statistics, unless it never initialises CUDA."""
        if program is None:
            self.row(what, "not run", "no nvcc, and not in build/")
            return
        status, bare, err, _, _ = self.run([program, *arguments])
        if status != 0:
            self.row(what, "FAILED bare", f"exit {status}: {last_line(err)}")
            return
        status, pool, err, stats, _ = self.run([program, *arguments], preload=True)
        if status != 0:
            self.row(what, "FAILED", f"exit {status}: {last_line(err)}")
        elif stats is None and counted:
            self.row(what, "FAILED", "no statistics: spillway saw no CUDA")
        else:
            bare, pool = (re.sub(rf"(?m)^({on_purpose}).*\n", "", text) for text in (bare, pool))
            self.row(what, "same output" if bare == pool else "DIFFERS",
                     first_difference(bare, pool) + (counters(stats) if counted else ""))


def last_line(text):
    return (text.strip().splitlines() or ["no output"])[-1][:200]


def first_difference(bare, pool):
    for one, other in zip(bare.splitlines(), pool.splitlines()):
        if one != other:
            return f"bare `{one}`, under spillway `{other}`; "
    return "" if bare == pool else "one output is longer; "


def counters(stats):
    device = stats["devices"][0]
    return (f"{device['allocs']} served, {device['passed_allocs']} passed, "
            f"{device['ooms']} out of memory")


def check_doors(check):
    runtime = PRELOAD / "door_runtime.c"
    dynamic = check.compile("door_runtime", [runtime], "-cudart", "shared")
    check.compare("runtime, dynamic cudart", dynamic)
    if dynamic is not None:
        status, _, err, _, _ = check.run([check.root / "spillway", "run", "--", dynamic])
        check.row("the same by `spillway run`", "ok" if status == 0 else "FAILED", last_line(err))
    if check.nvcc:
        check.compare("runtime, static cudart",
                      check.compile("door_static", [runtime], "-cudart", "static"))
    else:
        check.row("runtime, static cudart", "not run", "needs nvcc")
    check.compare("linked -lcuda", check.compile("door_linked", [PRELOAD / "doors.c"],
                                                 "-DDOOR_LINKED", "-lcuda"))
    lookup = check.compile("door_lookup", [PRELOAD / "doors.c"])
    for door in ("dlsym", "proc_v1", "proc_v2"):
        check.compare(f"driver by {door}", lookup, door)


def check_programs(check):
    check.compare("resolver", check.compile("resolver", [PRELOAD / "resolver.c"]), counted=False)
    check.compare("answers", check.compile("answers", [PRELOAD / "answers.c"], "-lcuda"),
                  on_purpose="ipc|retain|range handle")
    for name in ("pools", "vmm"):
        check.compare(name, check.compile(name, [PRELOAD / f"{name}.c"], "-lcuda"))
    for name in ("capture", "graph_memory", "limits"):
        check.compare(name, check.compile(name, [PRELOAD / f"{name}.c"], "-cudart", "shared"))
    forks = check.compile("forks", [PRELOAD / "forks.c"], "-cudart", "shared")
    for when in ("before", "after"):
        check.compare(f"fork {when} CUDA", forks, when)


def check_replay(check):
    replay = check.compile("replay", [TOOLS / f"{name}.c" for name in
                                      ("replay", "staging", "trace")], "-cudart", "shared")
    if replay is None:
        check.row("replay of traces", "not run", "no nvcc, and not in build/")
        return
    for trace in ("resnet50", "S_1", "pangu_2.6B"):
        for way in ("--async", "--sync"):
            command = [replay, way, "--streams", "4", SOURCE / f"tests/traces/{trace}.csv"]
            figures, good = [], True
            for preload in (False, True):
                status, out, err, stats, _ = check.run(command, preload)
                good = good and status == 0
                step = re.search(r"([\d.]+) s a step", out)
                figures.append(f"{'spillway' if preload else 'bare'} "
                               f"{step.group(1) + ' s a step' if step else last_line(err)}")
            if stats is not None:
                device = stats["devices"][0]
                figures.append("committed/live peak %.3f" % (
                    device["committed_peak_bytes"] / max(1, device["live_peak_bytes"])))
            check.row(f"replay {trace} {way}, 4 streams", "ok" if good else "FAILED",
                      ", ".join(figures))


def check_host_backed(check):
    if not check.nvcc:
        check.row("host-backed memory", "not run", "needs nvcc")
        return
    program = check.compile("host_backed", [SOURCE / "tests/gpu/host_backed.cu"], "-lcuda")
    if program is not None:
        status, out, err, _, _ = check.run([program])
        check.row("host-backed memory under copies, memset, atomics, a matrix product",
                  "ok" if status == 0 else "FAILED", out.strip() or last_line(err))


def check_torch(check):
    status, version, _, _, _ = check.run(
        [sys.executable, "-c", "import torch; assert torch.cuda.is_available(); "
                               "print(torch.__version__)"])
    if status != 0:
        check.row("PyTorch training", "not run", f"{sys.executable} has no PyTorch with a GPU")
        return
    ways = (("plain", False, {}),
            ("plain, backend:cudaMallocAsync", False,
             {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
            ("under spillway", True, {}))
    for label, flags in (("fp32", []), ("bf16, varying length, checkpointing",
                                        ["--bf16", "--vary-length", "--checkpointing"])):
        losses = {}
        for way, preload, env in ways:
            status, out, err, stats, _ = check.run([sys.executable, TORCH, "--steps", "8", *flags],
                                                   preload, **env)
            losses[way] = re.findall(r"^step .*$", out, re.MULTILINE)
            ends = re.findall(r"^(?:peak memory|step time): (.*)$", out, re.MULTILINE)
            same = losses[way] == losses["plain"] and losses[way]
            result = ("FAILED" if status != 0 else "reference" if way == "plain"
                      else "losses equal" if same else "losses DIFFER")
            figures = ", ".join(ends) if status == 0 else last_line(err)
            if stats is not None:
                figures += "; " + counters(stats)
            check.row(f"PyTorch {version.strip()} {label}, {way}", result, figures)


def step_time(text):
    """In milliseconds; None when the run did not get so far."""
    match = re.search(r"^step time: ([\d.]+) ms", text, re.MULTILINE)
    return float(match[1]) if match else None


def compare_training(check, what, plain, command, preload=True, **options):
    """One run beside the plain one: the same losses, and how long a step takes. The peak of what
    was live under spillway; None when there is none."""
    status, out, err, stats, _ = check.run(command, preload, **options)
    losses, expected = (re.findall(r"^step .*$", text, re.MULTILINE) for text in (out, plain))
    bare, own = step_time(plain), step_time(out)
    figures = re.findall(r"^(?:peak memory|step time): (.*)$", out, re.MULTILINE)
    if bare and own:
        figures.append(f"{own / bare:.2f} of the plain step")
    if stats is not None:
        device = stats["devices"][0]
        figures += [f"{key} {device[key]}" for key in (
            "spilled_bytes", "promoted_bytes", "host_peak_bytes", "moves", "abandoned_moves",
            "second_copies", "audits", "failed_audits", "believed_moves", "moves_at_work",
            "stall_ns", "closed_ns", "ooms")]
    check.row(f"PyTorch bf16, {what}",
              "FAILED" if status != 0 else "losses equal" if losses == expected
              else "losses DIFFER", ", ".join(figures) if status == 0 else last_line(err))
    return stats["devices"][0]["live_peak_bytes"] if stats is not None else None


def check_spill(check):
    """Training on less memory than it holds: the same losses, and what it costs, beside PyTorch's
    own way to the host, a spill in which nothing moves, and one that trusts the arguments of
    kernels. There are as many steps as it takes to earn that, and as many again."""
    command = [sys.executable, TORCH, "--steps", "12", "--bf16", *TRAINING]
    static = check.work / "static.json"
    static.write_text(json.dumps({"version": 1, "rules": [
        {"name": "static", "match": {}, "action": {"movable": False}}]}))
    status, plain, err, _, _ = check.run(command)
    if status != 0:
        check.row("PyTorch on less memory than it holds", "not run", last_line(err))
        return
    check.row("PyTorch bf16, plain", "reference",
              ", ".join(re.findall(r"^(?:peak memory|step time): (.*)$", plain, re.MULTILINE)))
    compare_training(check, "plain with save_on_cpu", plain, [*command, "--save-on-cpu"],
                     preload=False)
    live = compare_training(check, "all memory", plain, command)
    for share in SPILL_LIMITS if live is not None else ():
        limit = str(live * share // 100)
        compare_training(check, f"{share} % of what it holds", plain, command,
                         SPILLWAY_LIMIT=limit)
        compare_training(check, f"{share} %, arguments trusted", plain, command,
                         SPILLWAY_LIMIT=limit, SPILLWAY_OVERLAP="trust")
        compare_training(check, f"{share} %, nothing moves", plain, command,
                         SPILLWAY_LIMIT=limit, SPILLWAY_POLICY=str(static))


def check_sites(check):
    """Checks that the sites at the peak name lines of the script."""
    status, _, err, stats, _ = check.run([sys.executable, TORCH, "--steps", "3"], preload=True)
    if status != 0 or stats is None:
        check.row("call sites of PyTorch tensors", "not run", last_line(err))
        return
    sites = stats.get("sites", [])
    named = [site for site in sites
             if any(frame["file"].endswith(TORCH.name) for frame in site.get("python", []))]
    check.row("call sites of PyTorch tensors", "ok" if named else "FAILED: none names the script",
              f"{len(sites)} sites, {len(named)} name {TORCH.name}")


def can_import(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"],
                          capture_output=True).returncode == 0


def check_corpus(check):
    """Every script of tests/torch in all modes: each exits well, its figures agree."""
    count = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.device_count())"],
                           capture_output=True, text=True).stdout.strip()
    devices = int(count) if count.isdigit() else 0
    if devices == 0:
        check.row("PyTorch corpus", "not run", f"{sys.executable} has no PyTorch with a GPU")
        return
    sys.path.insert(0, str(CORPUS))
    from corpus import SCRIPTS

    has_transformers = can_import("transformers")

    def run(name):
        if SCRIPTS[name].processes > devices:
            return "not run", f"needs {SCRIPTS[name].processes} GPUs"
        if name.startswith("hf_") and not has_transformers:
            return "not run", f"{sys.executable} has no transformers"
        left = check.deadline - time.monotonic()
        if left < 1:
            return "not run", "no time left"
        try:
            done = subprocess.run([sys.executable, str(CORPUS / "test_script.py"), "--gpu", name],
                                  env=os.environ | {"BUILD_ROOT": str(check.root)},
                                  capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            return "FAILED", "no time left"
        failures = re.findall(r"^(?:FAIL|ERROR): (\w+).*", done.stderr, re.MULTILINE)
        reasons = re.findall(r"^\w*(?:Error|Exception)\b.*", done.stderr, re.MULTILINE)
        figures = re.findall(r"^exempt: .*", done.stdout, re.MULTILINE)[-1:]
        return ("ok" if done.returncode == 0 else "FAILED",
                "; ".join([*sorted(set(failures)), *reasons[:2], *figures]))

    # A program that takes all the memory it finds must run alone.
    alone = [name for name, row in SCRIPTS.items() if row.exempt == "peaks"]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        others = [name for name in SCRIPTS if name not in alone]
        found = dict(zip(others, pool.map(run, others)))
    found.update((name, run(name)) for name in alone)
    for name in SCRIPTS:
        check.row(f"PyTorch corpus, all modes: {name}", *found[name])


def doctor(check):
    status, out, err, _, _ = check.run([check.root / "spillway", "doctor", "--measure"],
                                       timeout=180)
    check.row("`spillway doctor --measure`", "ok" if status == 0 else f"exit {status}",
              "below" if out else last_line(err))
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    check = Check(args.root)
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total",
                            "--format=csv,noheader"], capture_output=True, text=True)
    machine = (query.stdout.splitlines() or ["unknown GPU"])[0]
    today = datetime.date.today().isoformat()
    print("| what | result | figures |\n|---|---|---|")
    begin = time.monotonic()
    try:
        check_doors(check)
        check_programs(check)
        check_host_backed(check)
        measured = doctor(check)
        check_replay(check)
        check_torch(check)
        if can_import("torch"):
            check_spill(check)
            check_sites(check)
        check_corpus(check)
        for what, issue in LATER:
            check.row(what, "not yet", issue)
    finally:
        shutil.rmtree(check.work, ignore_errors=True)
    version = subprocess.run([check.root / "spillway", "--version"], capture_output=True,
                             text=True).stdout.strip()
    name = re.sub(r"[^a-z0-9]+", "-", machine.split(",")[0].lower()).strip("-")
    output = args.output or SOURCE / f"tests/gpu/results/{name}-{today}.md"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join([
        f"# {machine.split(',')[0]}, {today}", "",
        f"{machine}; {version}, from `{args.root}`; {time.monotonic() - begin:.0f} s.", "",
        "| what | result | figures |", "|---|---|---|", *check.rows, "",
        "## spillway doctor --measure", "", measured.strip(), ""]))
    bad = [row for row in check.rows if re.search(r"FAILED|DIFFER|WRONG", row)]
    print(f"\n{output}: {len(check.rows)} rows, {len(bad)} bad")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
