"""Programs bare and under spillway."""
import re


def first_difference(bare, pool):
    for one, other in zip(bare.splitlines(), pool.splitlines()):
        if one != other:
            return f"bare `{one}`, under spillway `{other}`"
    return "one output is longer"


def counters(run):
    return (f"{run.device('allocs')} served, {run.device('passed_allocs')} passed, "
            f"{run.device('ooms')} out of memory")


def programs(session, what, command, on_purpose=r"$^", counted=True, status=0, alone=False):
    """The same output of a command bare and under spillway, but for lines that match `on_purpose`;
    and statistics, unless it never initialises CUDA. With `alone` one that fails bare must work
    under spillway. The second run, or None."""
    bare = session.run(command)
    if bare.status != status:
        session.skip(what, f"bare it fails: {bare.why()}")
        if alone:
            pool = session.run(command, preload=True)
            session.check(pool.status == status, f"{what}, under spillway alone",
                          pool.why() if pool.status != status else counters(pool))
        return None
    pool = session.run(command, preload=True)
    if pool.status != status:
        session.failed(what, pool.why())
        return None
    if counted and pool.stats is None:
        session.failed(what, "no statistics: spillway saw no CUDA")
        return None
    one, other = (re.sub(rf"(?m)^({on_purpose}).*\n", "", run.out) for run in (bare, pool))
    session.check(one == other, f"{what}: same output",
                  first_difference(one, other) if one != other
                  else counters(pool) if counted else "")
    return pool
