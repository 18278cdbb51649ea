"""Small programs whose output must be the same with and without spillway."""
import re

from rows import compare, row
from setting import SOURCE

TRACES = ("resnet50", "S_1", "pangu_2.6B")


@row(order=350, seconds=240, cost=8, beside=True, depends="library programs",
     decides="that small programs answer the same")
def programs(session):
    """Answers, pools, virtual memory, captures, graphs and forks: the same output."""
    rows = ((["resolver"], {"counted": False}),
            (["answers"], {"on_purpose": "ipc capable|ipc handle:|retain|range handle"}),
            (["pools"], {}), (["vmm"], {}), (["capture"], {"alone": True}), (["graph_memory"], {}),
            (["forks", "before"], {}), (["forks", "after"], {}))
    for words, how in rows:
        program = session.program(words[0])
        if program is not None:
            compare.programs(session, " ".join(words), [program, *words[1:]], **how)


@row(order=360, seconds=240, cost=12, beside=True, depends="library programs",
     decides="that two processes share blocks by CUDA IPC, with content intact and nothing left")
def sharing(session):
    """Two processes share blocks of the pool by CUDA IPC: content, ends of processes, leaks."""
    program = session.program("ipc")
    many = "20" if session.setting.tiny else "500"
    ways = (["exchange"], ["rules"], ["forks"], ["threads"], ["owner_killed"], ["other_killed"],
            ["many", many])
    for words in ways if program is not None else ():
        run = session.run([program, *words], preload=True, seconds=60,
                          options={"SPILLWAY_MOVE_WAIT": "1000", "SPILLWAY_CHECK": "on"})
        if run.status != 0 or "broken" in run.err:
            session.failed(" ".join(words), run.why())
            continue
        session.ok(" ".join(words), f"{run.seconds:.1f} s" if not session.setting.simulated else "")
        for line in sorted(run.out.splitlines()):
            subject, _, value = line.rpartition(" ")
            session.figure(f"{words[0]}: {subject}", value)


@row(order=15, seconds=120, cost=7, beside=True, depends="library command programs",
     decides="that memory goes to the host and comes back with its content, when a program pauses "
             "itself and when `spillway pause` does, and that graphs replay right then")
def pauses(session):
    """Memory goes to the host and back, by the program itself and by `spillway pause`, that of
    graphs too; content is checked."""
    program = session.program("paused")
    rounds = 2 if session.setting.tiny else 20
    if program is None:
        return
    run = session.run([program, "api", str(rounds)], preload=True, seconds=60,
                      options={"SPILLWAY_CHECK": "on"})
    found = re.findall(r"pause 0, left 0, used \d+, back (\d+)", run.out)
    session.check(run.status == 0 and len(found) == rounds and "broken" not in run.err,
                  f"{rounds} times", run.why() if run.status else f"{len(found)} moved all blocks")
    if not session.setting.simulated:
        session.timing(f"{rounds} pauses of 30 MiB", f"{run.seconds:.1f} s")
    run = session.run([program, "asked", str(rounds), f"{session.setting.root}/spillway"],
                      preload=True, seconds=60,
                      options={"SPILLWAY_CHECK": "on", "SPILLWAY_CONTROL": "on"})
    session.check(run.status == 0 and "broken" not in run.err,
                  f"{rounds} times from outside, with graphs", run.why() if run.status else "")


@row(order=380, seconds=240, cost=48, beside=True, depends="library programs",
     decides="that no end of a C program hangs or changes its status")
def exits(session):
    """Ends of processes with memory held: return, exit, _exit, abort, SIGKILL, 20 times each."""
    program = session.program("exits")
    times = 2 if session.setting.tiny else 20
    ways = (("return", 5), ("exit", 3), ("_exit", 4), ("abort", -6), ("kill", -9))
    for way, status in ways if program is not None else ():
        statuses, longest = [], 0.0
        for _ in range(times):
            run = session.run([program, way], preload=True, seconds=30)
            # `spillway sim` reports a signal as shells do.
            statuses.append(128 - status if run.status == 128 - status else run.status)
            longest = max(longest, run.seconds)
        good = all(found in (status, 128 - status) for found in statuses)
        session.check(good, f"{way}, {times} times",
                      f"status {sorted(set(statuses))}, longest {longest:.1f} s")


@row(order=60, seconds=240, cost=45, depends="library tests/tools tests/traces",
     decides="speed and footprint on recorded traces")
def replay(session):
    """Recorded traces of real models, replayed bare and under spillway, content checked."""
    program = session.program("replay")
    for trace in TRACES if program is not None else ():
        for way in ("--async", "--sync"):
            replay_one(session, program, trace, way)


def replay_one(session, program, trace, way):
    steps = ["--steps", "1"] if session.setting.tiny else []
    for preload in (False, True):
        what = f"{trace} {way}, {'under spillway' if preload else 'bare'}"
        run = session.run([program, way, *steps, "--streams", "4",
                           SOURCE / f"tests/traces/{trace}.csv"], preload=preload, seconds=60)
        if run.status != 0:
            session.failed(what, run.why())
            continue
        mismatches = re.search(r"(\d+) mismatches", run.out)
        if mismatches and not session.setting.simulated:
            session.check(mismatches.group(1) == "0", what, mismatches.group())
        step = re.search(r"([\d.]+) s a step", run.out)
        if step:
            session.timing(f"{what}, a step", f"{step.group(1)} s")
        if preload and run.stats:
            session.figure(f"{what}, committed by live peak", round(
                run.device("committed_peak_bytes") / max(1, run.device("live_peak_bytes")), 3))
