"""PyTorch's features, each bare and under spillway (tests/torch/features)."""
import concurrent.futures
import json
import sys

from rows import row
from setting import SOURCE

RUNNER = SOURCE / "tests/torch/run_features.py"
AT_ONCE = 6       # processes, each of which runs its share of the features
SECONDS = 60


def catalogue():
    """The features by name."""
    sys.path.insert(0, str(RUNNER.parent))
    import features
    return features.catalogue()


def shares(chosen):
    """[(settings, names)]: features that need the same variables, in about AT_ONCE lists."""
    by_settings = {}
    for one in chosen:
        by_settings.setdefault(one.settings, []).append(one.name)
    found = []
    for settings, names in by_settings.items():
        parts = min(AT_ONCE, len(names)) if settings == () else 1
        found += [(dict(settings), names[i::parts]) for i in range(parts)]
    return found


def run(session, preload, settings, names):
    """What became of the features, by name; those that the runner did not come to are left out."""
    done = session.run([session.setting.python(), RUNNER, *names], preload=preload,
                       seconds=SECONDS, options=settings)
    found = {}
    for line in done.out.splitlines():
        try:
            outcome = json.loads(line)
            found[outcome["feature"]] = outcome
        except (ValueError, KeyError, TypeError):
            pass
    return found


def run_all(session, preload, chosen):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        parts = pool.map(lambda share: run(session, preload, *share), shares(chosen))
        return {name: outcome for part in parts for name, outcome in part.items()}


def difference(bare, pool):
    """("failed" or "wrong", how) for a feature that works bare and not the same under spillway."""
    if pool is None:
        return "failed", "it was not run: no time left"
    if pool["status"] != "ok":
        return "failed", f"{pool['status']}: {pool.get('text', '')}"
    for key, value in bare["figures"].items():
        if pool["figures"].get(key) != value:
            return "wrong", f"{key}: bare {value}, under spillway {pool['figures'].get(key)}"
    return None


def differ(bare, pool):
    """Those that work bare, and not the same under spillway, with how."""
    return {name: found for name, outcome in bare.items()
            if outcome["status"] == "ok" and (found := difference(outcome, pool.get(name)))}


def report(session, chosen, bare, pool, found):
    for name, (state, how) in found.items():
        session.note(state, name, how)
    for one in chosen:
        outcome = bare.get(one.name, {"status": "not run", "text": "no time left"})
        if outcome["status"] != "ok":
            session.skip(one.name, f"bare: {outcome['status']}: {outcome.get('text', '')}")
    same = sum(outcome["status"] == "ok" for outcome in bare.values()) - len(found)
    session.ok("the same under spillway", f"{same} of {len(chosen)}")
    session.data({"features": {one.name: [side.get(one.name, {}).get("status", "not run")
                                          for side in (bare, pool)] for one in chosen}})


@row(order=45, seconds=300, cost=45, depends="library tests/torch/features "
     "tests/torch/run_features.py", again=False,
     decides="which of PyTorch's features tensor mode loses or changes")
def features(session):
    """Each feature of PyTorch that touches memory, bare and under spillway: the same figures."""
    if session.torch() is None:
        return
    if not RUNNER.exists():
        session.skip("features", f"{RUNNER.name} is not here")
        return
    chosen = [one for one in catalogue().values() if one.devices == 1]
    if session.setting.simulated:
        session.unmeasurable("features")  # the suite torch runs them
        chosen = chosen[:2]
    bare, pool = (run_all(session, preload, chosen) for preload in (False, True))
    again = [one for one in chosen if one.name in differ(bare, pool)]
    for one in again if session.left() > SECONDS / 2 else ():
        # Beside others the device has less memory; alone the two must agree.
        for preload, side in ((False, bare), (True, pool)):
            side |= run(session, preload, dict(one.settings), [one.name])
    report(session, chosen, bare, pool, differ(bare, pool))
