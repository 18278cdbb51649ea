"""Runs features of PyTorch bare and in the modes of spillway, and compares their figures."""
import concurrent.futures
import itertools
import json
import pathlib
import re
import tempfile

import features
from features import undefined
from running import HERE, Run

BARE = "bare"
WORDS = pathlib.Path(__file__).resolve().parents[2] / "src/common/option_words.def"

# The modes in which no feature may be lost.
LOSE_NOTHING = ("auto", "segment")


def modes():
    """Every mode that --mode takes, as its row in option_words.def has them."""
    row = re.search(r"SPW_WORDS\(MODE,.*?\)\)", WORDS.read_text(), re.S)[0]
    return re.findall(r'"(\w+)"', row)


def flags(mode, devices):
    return [*(["--no-pool"] if mode == BARE else ["--mode", mode]), "--devices", str(devices)]


def groups(names):
    """The names by what their processes can have in common: (devices, settings)."""
    known = features.catalogue()

    def common(name):
        return known[name].devices, known[name].settings
    for key, members in itertools.groupby(sorted(names, key=common), common):
        yield *key, list(members)


def run(interpreter, mode, names, fresh=False):
    """The outcome of each feature in a mode, by name. One that is not there: the process that
    starts the others has ended."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as cache:
        for devices, settings, members in groups(names):
            # Meson has freed memory overwritten. PyTorch 2.11 reads some at the end of a process
            # that has shared tensors.
            variables = {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1",
                         "TMPDIR": cache, "MALLOC_PERTURB_": "0", **dict(settings)}
            done = Run([interpreter, str(HERE / "run_features.py"), *(["--fresh"] if fresh else []),
                        *members], flags(mode, devices), variables)
            for line in done.stdout.splitlines():
                if line.startswith("{"):
                    outcome = json.loads(line)
                    outcomes[outcome.pop("feature")] = outcome
            for name in members:
                outcomes.setdefault(name, {"status": f"exit {done.status}",
                                           "text": "nothing was said of it",
                                           "output": done.stderr[-3000:]})
    return outcomes


def run_modes(interpreter, chosen, names, fresh=False):
    """Outcomes by mode; two modes run at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        started = {mode: pool.submit(run, interpreter, mode, names, fresh) for mode in chosen}
        return {mode: future.result() for mode, future in started.items()}


def differences(name, mode, bare, outcome):
    """The figures that differ and may not."""
    keys = {**bare["figures"], **outcome["figures"]}
    return [key for key in keys if bare["figures"].get(key) != outcome["figures"].get(key)
            and undefined.reason(name, key, mode) is None]


def verdict(name, mode, bare, outcome):
    """What became of a feature in a mode, in a word or two: "same", "not here", "figures: ...", or
    how it was lost."""
    if bare["status"] == "absent":
        return "not here: " + bare["text"]
    if bare["status"] != "ok":
        return tidy(f"fails bare: {bare['status']} {bare.get('text', '')}".strip())
    if outcome["status"] == "ok":
        differing = differences(name, mode, bare, outcome)
        return "figures: " + ", ".join(differing) if differing else "same"
    if outcome["status"] in ("error", "absent"):
        return tidy(f"{outcome['status']}: {outcome['text']}")
    return outcome["status"]


def tidy(text):
    """One short line without addresses."""
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)[:120]


def is_loss(text, strict):
    """`strict`: also if it fails bare, which must be known of a current PyTorch; older ones have
    defects of their own."""
    return (text != "same" and not text.startswith("not here")
            and (strict or not text.startswith("fails bare")))


def explain(name, bare, outcome, text):
    """Some lines on a verdict, for people."""
    lines = [f"{name}: {text}"]
    if text.startswith("figures: "):
        lines += [f"    {key}: {bare['figures'].get(key)} bare, {outcome['figures'].get(key)} here"
                  for key in text.removeprefix("figures: ").split(", ")]
    for kind, one in (("bare", bare), ("here", outcome)):
        if "output" in one:
            lines.append(f"    {kind}: " + one["output"].strip().replace("\n", "\n    "))
    return "\n".join(lines)
