"""Training, step by step: what each step took and did, not what all did together."""
import re
import statistics

from rows import row, told, training
from setting import SOURCE

SCRIPT = told.SCRIPTS / "steps.py"
WORDS = SOURCE / "src/common/option_words.def"
DEPENDS = "library python tests/torch/gpt2_like.py tests/gpu/scripts/steps.py"
SECONDS = 3.0  # of the steps of one run; what is over is left out


def overlaps():
    """The words of SPILLWAY_OVERLAP."""
    return re.findall(r'SPW_WORD\(OVERLAP, \w+, "(\w+)"\)', WORDS.read_text())


def command(session, python, steps, seconds, *flags):
    small = session.setting.tiny
    return [python, SCRIPT, "--seconds", str(seconds), "--steps", str(3 if small else steps),
            "--made-on-device", "--bf16", *(training.TINY if small else []), *flags]


def of_steady(steps, figure):
    """The median of a figure over the second half of the steps, in which all is known."""
    values = [figure(step) for step in steps[len(steps) // 2:]]
    return statistics.median(values) if values else 0


def memory_calls(step):
    """How many calls on virtual memory spillway made in a step."""
    return sum(count for name, count in step["driver"].items()
               if name.startswith("cuMem") and not name.startswith(("cuMemcpy", "cuMemset")))


def in_words(step):
    """The counters of a step that did anything."""
    return ", ".join([f"memory calls {memory_calls(step)}"] + [
        f"{key} {value}" for key, value in step.items()
        if key not in ("step", "length", "driver") and value])


def note(session, what, run):
    """The steps of a run: all of them as data, the first and the last as figures."""
    steps = told.entries(run).get("steps", [])
    session.data({what: steps})
    if run.status != 0 or not steps:
        session.failed(what, run.why())
        return steps
    if session.setting.simulated:
        session.unmeasurable(f"{what}: step")
    else:
        session.figure(f"{what}: step", f"{of_steady(steps, lambda step: step['step_ms']):.1f} ms "
                       f"(median of the last half of {len(steps)})")
    for step in (steps[0], steps[-1]):
        shown = step if not session.setting.simulated else {
            key: value for key, value in step.items() if not key.endswith(("_ms", "_ns"))}
        session.figure(f"{what}: step {step['step']}", in_words(shown))
    return steps


def at_share(session, share):
    """Ten steps with so many percent of the memory that they hold, in each overlap mode."""
    python = session.torch()
    if python is None:
        return
    words = command(session, python, 10, SECONDS)
    whole = session.run(words, preload=True)
    note(session, "all memory", whole)
    if whole.status != 0 or not whole.stats:
        return
    limit = training.limit(whole, share)
    for overlap in overlaps():
        run = session.run(words, preload=True, options=limit | {"SPILLWAY_OVERLAP": overlap})
        note(session, overlap, run)
        if run.status == 0 and not session.setting.simulated:
            found = training.losses(run)
            session.check(bool(found) and found == training.losses(whole)[:len(found)],
                          f"{overlap}: losses")


@row(order=40, seconds=240, cost=20, depends=DEPENDS,
     decides="the simulator's factors for moves, and where the time of a step goes in each mode")
def spill_short_90(session):
    """Ten steps of GPT-2 small on 90 % of the memory in each overlap mode, step by step."""
    at_share(session, 90)


@row(order=42, seconds=240, cost=20, depends=DEPENDS,
     decides="the same where a quarter of the memory is missing")
def spill_short_75(session):
    """Ten steps of GPT-2 small on 75 % of the memory in each overlap mode, step by step."""
    at_share(session, 75)


@row(order=44, seconds=240, cost=20, depends=DEPENDS,
     decides="whether steps of new lengths are slower under spillway, and whether by its calls")
def varying_lengths(session):
    """24 steps of varying lengths with checkpointing: time, length and driver calls of each."""
    python = session.torch()
    if python is None:
        return
    words = command(session, python, 24, 5.0, "--vary-length", "--checkpointing")
    ways = {"plain": (False, {}),
            "cudaMallocAsync": (False, {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}),
            "under spillway": (True, {}),
            "under spillway, sites off": (True, {"SPILLWAY_SITES": "off"})}
    plain = []
    for what, (preload, options) in ways.items():
        steps = note(session, what, session.run(words, preload, options=options))
        if what == "plain":
            plain = steps
        if session.setting.simulated or what == "plain":
            continue
        session.figure(f"{what}: each step, times the plain one of its length", " ".join(
            f"{step['step_ms'] / max(other['step_ms'], 1e-3):.2f}"
            for step, other in zip(steps, plain)))
        session.figure(f"{what}: memory calls of each step",
                       " ".join(str(memory_calls(step)) for step in steps))
