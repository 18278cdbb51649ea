"""PyTorch's features, each bare and under spillway (tests/torch/features)."""
import concurrent.futures
import json
import os
import sys

from rows import row
from setting import SOURCE

FOLDER = SOURCE / "tests/torch"
MODE = "auto"     # the default
AT_ONCE = 6       # processes that run their shares of the features bare, and as many under spillway
SECONDS = 60      # of each, PyTorch's import included
AGAIN = 20        # features that differ are run again alone, so many at most


def library(session):
    """What compares two outcomes of a feature, and the list of features."""
    os.environ.setdefault("BUILD_ROOT", session.setting.root)
    sys.path.insert(0, str(FOLDER))
    import feature_runs
    import features
    return feature_runs, features.catalogue()


def run(session, names, preload):
    """What became of the features, by name; those that the time was too short for are left out."""
    if not names:
        return {}
    seconds = SECONDS * (3 if session.setting.simulated else 1)
    done = session.run(["timeout", "-k", "2", str(seconds), session.setting.python(),
                        FOLDER / "run_features.py", *names], preload=preload, seconds=seconds + 10)
    found = {}
    for line in done.out.splitlines():
        try:
            outcome = json.loads(line)
            found[outcome["feature"]] = outcome
        except (ValueError, KeyError, TypeError):
            pass
    return found


def run_all(session, names):
    """(outcomes bare, outcomes under spillway), both in the same order."""
    found = {}, {}
    shares = 1 if session.setting.simulated else AT_ONCE
    with concurrent.futures.ThreadPoolExecutor(2 * shares) as pool:
        parts = [(preload, pool.submit(run, session, names[i::shares], preload))
                 for i in range(shares) for preload in (False, True)]
        for preload, part in parts:
            found[preload].update(part.result())
    return found


def verdicts(runs, bare, pool):
    """What became of each feature that ran both ways."""
    return {name: runs.verdict(name, MODE, bare[name], pool[name])
            for name in bare if name in pool}


def report(session, runs, names, said):
    """A loss is a finding by itself where nothing may be lost; else a figure."""
    for name, text in said.items():
        if text.startswith(("not here", "fails bare")):
            session.skip(name, text)
        elif text != "same":
            note = session.failed if MODE in runs.LOSE_NOTHING else session.figure
            note(f"lost: {name}", text)
    same = list(said.values()).count("same")
    note = session.ok if said else session.failed
    note("the same under spillway", f"{same} of {len(said)} that ran, of {len(names)}")
    session.data({"features": said})


@row(order=50, seconds=240, cost=75, again=False,
     depends="library tests/torch/features tests/torch/run_features.py "
             "tests/torch/feature_runs.py",
     decides="which of PyTorch's features are lost or changed by default")
def features(session):
    """Each feature of PyTorch that touches memory, bare and under spillway: the same figures."""
    if session.torch() is None:
        return
    if not (FOLDER / "feature_runs.py").exists():
        session.skip("features", "tests/torch/feature_runs.py is not here")
        return
    runs, known = library(session)
    # Those with variables of their own would import PyTorch again for each.
    names = [one.name for one in known.values() if one.devices == 1 and not one.settings]
    if session.setting.simulated:
        session.unmeasurable("features")  # the suite torch runs them
        names = names[:2]
    bare, pool = run_all(session, names)
    differ = [name for name, text in verdicts(runs, bare, pool).items()
              if runs.is_loss(text, strict=False)]
    if differ and session.left() > 2 * SECONDS:
        # Beside others the device has less memory; alone the two must agree.
        for preload, side in ((False, bare), (True, pool)):
            side.update(run(session, differ[:AGAIN], preload))
    report(session, runs, names, verdicts(runs, bare, pool))
