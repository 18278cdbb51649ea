"""Training with PyTorch: the same losses with spillway, with less memory, beside graphs."""
import json
import re
import shutil

from rows import row
from session import Job
from setting import SOURCE

SCRIPT = SOURCE / "tests/torch/gpt2_like.py"
SCRIPTS = SOURCE / "tests/gpu/scripts"
TINY = ["--layers", "2", "--width", "256", "--heads", "4", "--vocabulary", "5000", "--context",
        "256", "--batch", "4"]
SHOWN = ("spilled_bytes", "promoted_bytes", "host_peak_bytes", "moves", "abandoned_moves",
         "second_copies", "moves_at_work", "stall_ns", "closed_ns", "ooms")


def command(session, python, steps, *flags):
    small = session.setting.tiny
    return [python, SCRIPT, "--steps", str(2 if small else steps), *(TINY if small else []), *flags]


def step_time(run):
    match = re.search(r"^step time: ([\d.]+) ms", run.out, re.MULTILINE)
    return float(match.group(1)) if match else None


def longest_step(run):
    match = re.search(r"^step time: .*the longest ([\d.]+) s", run.out, re.MULTILINE)
    return f", the longest {match.group(1)} s" if match else ""


def losses(run):
    return re.findall(r"^step \d+: .*$", run.out, re.MULTILINE)


def judge(session, what, plain, run):
    """A run beside the plain one: the same losses, and how long a step takes."""
    if run.status != 0:
        session.failed(what, run.why())
        return
    if session.setting.simulated:
        session.unmeasurable(f"{what}: losses")
    else:
        same = losses(run) == losses(plain)
        session.check(same and bool(losses(run)), f"{what}: losses",
                      "equal" if same else f"{(losses(run) or ['none'])[-1]}, "
                      f"plain {(losses(plain) or ['none'])[-1]}")
        if step_time(run) and step_time(plain):
            session.figure(f"{what}: step", f"{step_time(run)} ms, "
                           f"{step_time(run) / step_time(plain):.3f} of the plain one"
                           f"{longest_step(run)}")
    if run.stats is not None:
        session.figure(f"{what}: counters", ", ".join(
            f"{key} {run.device(key)}" for key in SHOWN if run.device(key)) or "nothing moved")


def judge_plain(session, run):
    """True if the run that others are compared with went well; notes its figures."""
    if run.status != 0:
        session.skip("plain training", run.why())
        return False
    for line in re.findall(r"^(?:peak memory|step time): .*$", run.out, re.MULTILINE):
        if not session.setting.simulated:
            session.figure(f"plain: {line}")
    return True


def compare(session, words, others, plain=None):
    """Runs the words plainly, unless `plain` has done so, and the Jobs in `others` by their names.
    Returns the plain run and the last one, or None twice when the plain one fails."""
    first = [] if plain else [Job(words, preload=False)]
    runs = session.in_turn(first + list(others.values()))
    plain = plain or runs.pop(0)
    if first and not judge_plain(session, plain):
        return None, None
    for what, run in zip(others, runs):
        judge(session, what, plain, run)
    return plain, runs[-1]


def limit(run, share):
    """The option for so many percent of the memory that a run held at its peak."""
    return {"SPILLWAY_LIMIT": str(run.device("live_peak_bytes") * share // 100)}


def report(session, what, run, words=()):
    """Passes a script's lines "ok: ...", "wrong: ..." and "figure: ..." on."""
    for state, text in re.findall(r"^(ok|wrong|figure|skipped): (.*)$", run.out, re.MULTILINE):
        if session.setting.simulated and state in ("ok", "wrong"):
            session.unmeasurable(text)
        else:
            session.note(state, f"{what}: {text}")
    if run.status != 0:
        session.failed(what, run.why())
    elif not re.search(r"^(ok|wrong|figure|skipped): ", run.out, re.MULTILINE):
        session.failed(what, "it reports nothing")


@row(order=390, seconds=240, cost=80, depends="library tests/torch/gpt2_like.py",
     decides="losses are equal, and what a step costs")
def training(session):
    """Training in fp32 and bf16: equal losses, and the time of a step."""
    python = session.torch()
    ways = {"fp32": [], "bf16, varying length, checkpointing":
            ["--bf16", "--vary-length", "--checkpointing"]}
    for name, flags in ways.items() if python else ():
        words = command(session, python, 16, *flags)
        compare(session, words, {
            f"{name}, backend:cudaMallocAsync":
                Job(words, False, {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}),
            f"{name}, under spillway": Job(words)})


@row(order=400, seconds=240, cost=40, beside=True,
     depends="library tests/gpu/scripts/nccl_one.py",
     decides="that NCCL works with both of its memory modes, and when the device is full")
def nccl(session):
    """NCCL with one rank, NCCL_CUMEM_ENABLE 0 and 1, also with the communicator made when full."""
    python = session.torch()
    for cumem in ("0", "1") if python else ():
        for preload, limit in ((False, ""), (True, ""), (True, "512MiB")):
            options = {"NCCL_CUMEM_ENABLE": cumem, "NCCL_DEBUG": "WARN"}
            options |= {"SPILLWAY_LIMIT": limit} if limit else {}
            run = session.run([python, SCRIPTS / "nccl_one.py", *(["--full"] if limit else [])],
                              preload=preload, options=options, seconds=60)
            name = f"cumem {cumem}, {'under spillway' if preload else 'bare'}"
            report(session, name + (", beyond the limit" if limit else ""), run)


@row(order=410, seconds=180, cost=20, beside=True,
     depends="library tests/gpu/scripts/graphs.py",
     decides="that captures beside allocations stay valid, and replays right under spilling, "
             "which moves what the graph names between launches")
def graphs(session):
    """A capture beside a thread that allocates, 100 replays, with and without spilling; a graph
    whose blocks move between its replays."""
    python = session.torch()
    for limit in ("", "600MiB") if python else ():
        options = {"SPILLWAY_LIMIT": limit} if limit else {}
        run = session.run([python, SCRIPTS / "graphs.py"], preload=True, options=options)
        report(session, f"limit {limit}" if limit else "no limit", run)
        if limit and run.status == 0:
            session.figure("moved back to the device", run.device("promoted_bytes"))


@row(order=420, seconds=180, cost=10, beside=True,
     depends="library tests/gpu/scripts/product.py",
     decides="that cuBLAS computes the same on host memory")
def products_on_host(session):
    """bf16 and fp32 matrix products with operands and results on the host: equal bit for bit."""
    python = session.torch()
    if python is None:
        return
    policy = session.folder / "host.json"
    policy.write_text(json.dumps({"version": 1, "rules": [
        {"name": "host", "match": {"size": {"min": "1MiB"}}, "action": {"placement": "host"}}]}))
    run = session.run([python, SCRIPTS / "product.py"], preload=True,
                      options={"SPILLWAY_POLICY": str(policy)})
    plain = session.run([python, SCRIPTS / "product.py"])
    if run.status != 0 or plain.status != 0:
        session.failed("products", run.why() if run.status else plain.why())
        return
    session.figure("host memory used", run.device("host_peak_bytes"))
    for name, digest in re.findall(r"^digest of (.*): (\w+)$", run.out, re.MULTILINE):
        if session.setting.simulated:
            session.unmeasurable(name)
        else:
            session.check(f"digest of {name}: {digest}\n" in plain.out, name, "equal to device's")


@row(order=430, seconds=240, cost=14, again=False,
     depends="library tests/gpu/scripts/exhausted.py",
     decides="that a full card spills, without a limit")
def exhausted(session):
    """More tensors than the card holds, without a limit: content intact, host memory used."""
    python = session.torch()
    if python is None:
        return
    extra = "64" if session.setting.tiny else "4096"
    most = ["--most", "256"] if session.setting.tiny else []
    run = session.run([python, SCRIPTS / "exhausted.py", "--extra-mib", extra, *most],
                      preload=True, seconds=200)
    report(session, "tensors beyond the card", run)
    if run.stats:
        session.figure("counters", ", ".join(f"{key} {run.device(key)}" for key in SHOWN))


@row(order=10, seconds=300, cost=150, depends="library tests/torch/gpt2_like.py",
     decides="the cost of 90 % and 75 % of the memory, beside PyTorch's own way to the host")
def spill(session):
    """Training on 90 % and 75 % of what it holds: losses, and time beside save_on_cpu."""
    python = session.torch()
    if python is None:
        return
    words = command(session, python, 16, "--bf16")
    static = session.folder / "static.json"
    static.write_text(json.dumps({"version": 1, "rules": [
        {"name": "static", "match": {}, "action": {"movable": False}}]}))
    plain, whole = compare(session, words, {
        "save_on_cpu": Job([*words, "--save-on-cpu"], False), "all memory": Job(words)})
    if whole is None or not whole.stats:
        return
    jobs = {}
    for share in (90, 75):
        jobs[f"{share} %"] = Job(words, options=limit(whole, share))
        jobs[f"{share} %, guarded"] = Job(
            words, options=limit(whole, share) | {"SPILLWAY_OVERLAP": "guarded"})
        jobs[f"{share} %, nothing moves"] = Job(
            words, options=limit(whole, share) | {"SPILLWAY_POLICY": str(static)})
    compare(session, words, jobs, plain)


@row(order=440, seconds=60, cost=10, beside=True,
     depends="library tests/torch/gpt2_like.py",
     decides="that call sites name the script's lines")
def sites(session):
    """Call sites at the peak name lines of the script."""
    python = session.torch()
    if python is None:
        return
    run = session.run(command(session, python, 3), preload=True)
    if run.status != 0 or run.stats is None:
        session.failed("training", run.why())
        return
    found = run.stats.get("sites", [])
    named = [site for site in found
             if any(frame["file"].endswith(SCRIPT.name) for frame in site.get("python", []))]
    session.check(bool(named), "sites that name the script", f"{len(named)} of {len(found)}")


@row(order=450, seconds=180, cost=40, beside=True,
     depends="library tests/torch/gpt2_like.py",
     decides="what is left where host chunks are refused")
def host_refused(session):
    """Without the right to bind memory (CAP_SYS_NICE): what is left of spilling, and training."""
    python = session.torch()
    if python is None:
        return
    if session.setting.simulated:
        prefix, options = [], {"SPILLWAY_SIM_HOST_NUMA": "off"}
    elif shutil.which("setpriv"):
        prefix, options = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"], {}
    else:
        session.skip("training without CAP_SYS_NICE", "setpriv is not here")
        return
    words = command(session, python, 6, "--bf16")
    plain, whole = compare(session, words, {"all memory": Job(words)})
    if whole is not None and whole.stats:
        # What is forked would keep the right.
        words = [*prefix, session.setting.python(), *words[1:]]
        judge(session, "85 %, host chunks refused", plain, session.run(
            words, preload=True, options=options | limit(whole, 85)))


@row(order=35, seconds=240, cost=40, beside=True,
     depends="library tests/gpu/scripts/exits.py",
     decides="that no end of a process hangs or changes its status")
def process_exits(session):
    """DataLoader workers, os._exit, SIGTERM and an exception while memory is held, repeated."""
    python = session.torch()
    times = 1 if session.setting.tiny else 5
    ways = {"workers": (0,), "_exit": (7,), "sigterm": (-15, 143), "raise": (1,)}
    for way, expected in ways.items() if python else ():
        statuses, longest = set(), 0.0
        for _ in range(times):
            run = session.run([python, SCRIPTS / "exits.py", way], preload=True, seconds=60)
            statuses.add(run.status)
            longest = max(longest, run.seconds)
        session.check(statuses <= set(expected), f"{way}, {times} times",
                      f"status {sorted(statuses)}, longest {longest:.1f} s")


@row(order=20, seconds=360, cost=120, depends="library tests/torch/gpt2_like.py",
     decides="that content is intact in each overlap mode")
def verified_moves(session):
    """24 steps on 80 % of the memory, in each overlap mode; with SPILLWAY_VERIFY=on, except
    `guarded`, which would then move as `safe` does."""
    python = session.torch()
    if python is None:
        return
    words = command(session, python, 24, "--bf16")
    plain, whole = compare(session, words, {"all memory": Job(words)})
    if whole is None or not whole.stats:
        return
    kinds = ("safe", "guarded", "off")
    runs = session.in_turn([Job(words, options=limit(whole, 80) | {
        "SPILLWAY_VERIFY": "off" if overlap == "guarded" else "on",
        "SPILLWAY_OVERLAP": overlap}) for overlap in kinds])
    for overlap, run in zip(kinds, runs):
        judge(session, f"overlap {overlap}", plain, run)
        for line in re.findall(r"^spillway: .*BUG.*$", run.err, re.MULTILINE):
            session.wrong(f"overlap {overlap}", line)
