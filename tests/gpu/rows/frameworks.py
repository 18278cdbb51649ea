"""Other frameworks and tools, where they are installed, and the corpus of scripts."""
import concurrent.futures
import os
import re
import shutil
import sys

from rows import row, training
from setting import SOURCE

SCRIPTS = SOURCE / "tests/gpu/scripts"
CORPUS = SOURCE / "tests/torch"
AT_ONCE = 6  # scripts of the corpus, whose times mean nothing


def framework(session, module, script):
    """A script bare and under spillway; skipped where its module is missing. Frameworks other than
    PyTorch bring code that the simulated GPU cannot load."""
    if session.setting.simulated:
        session.unmeasurable(module)
        return
    python = session.setting.python()
    if session.run([python, "-c", f"import {module}"], seconds=60).status != 0:
        session.skip(module, "not installed")
        return
    for preload in (False, True):
        run = session.run([python, SCRIPTS / script], preload=preload, seconds=100)
        if run.status != 0 and not preload:
            session.skip(module, f"bare it fails: {run.why()}")
            return
        training.report(session, "under spillway" if preload else "bare", run)
        if preload and run.stats is not None:
            session.figure("counted", f"{run.device('allocs')} served, "
                           f"{run.device('passed_allocs')} passed")


@row(order=500, seconds=200, cost=18, beside=True,
     depends="library tests/gpu/scripts/jax_step.py",
     decides="JAX with its preallocation")
def jax(session):
    """JAX with its preallocation, bare and under spillway."""
    framework(session, "jax", "jax_step.py")


@row(order=510, seconds=120, cost=10, beside=True,
     depends="library tests/gpu/scripts/cupy_step.py",
     decides="CuPy with both of its allocators")
def cupy(session):
    """CuPy's memory pool, bare and under spillway."""
    framework(session, "cupy", "cupy_step.py")


@row(order=520, seconds=120, cost=14, beside=True,
     depends="library tests/gpu/scripts/triton_step.py",
     decides="Triton's own launcher")
def triton(session):
    """A Triton kernel, bare and under spillway."""
    framework(session, "triton", "triton_step.py")


@row(order=530, seconds=120, cost=6, beside=True,
     depends="library tests/gpu/scripts/numba_step.py",
     decides="Numba's own driver binding")
def numba(session):
    """A Numba kernel, bare and under spillway."""
    framework(session, "numba.cuda", "numba_step.py")


@row(order=540, seconds=240, cost=56, beside=True,
     depends="library tests/gpu/scripts/compile_step.py",
     decides="inductor, and its graph mode")
def torch_compile(session):
    """torch.compile with inductor, and its graph mode, bare and under spillway."""
    framework(session, "torch", "compile_step.py")


@row(order=550, seconds=180, cost=22, beside=True,
     depends="library tests/gpu/scripts/product.py",
     decides="that compute-sanitizer finds nothing, or only what it finds bare")
def sanitizer(session):
    """compute-sanitizer on a short training under spillway."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if session.setting.simulated:
        session.unmeasurable("compute-sanitizer")
        return
    if not os.path.exists(tool):
        session.skip("compute-sanitizer", "not installed")
        return
    python = session.torch()
    command = [tool, "--error-exitcode", "99", session.setting.python()]
    for preload in (False, True) if python else ():
        run = session.run([*command, SCRIPTS / "product.py"], preload=preload, seconds=80)
        what = "under spillway" if preload else "bare"
        errors = re.findall(r"ERROR SUMMARY: (.*)", run.out)
        if run.status == 0:
            session.ok(what, "; ".join(errors))
        elif preload:
            session.failed(what, run.why())
        else:
            session.skip(what, run.why())


@row(order=560, seconds=120, cost=20, beside=True,
     depends="library tests/gpu/scripts/profiled.py",
     decides="that the profiler sees kernels")
def profiler(session):
    """PyTorch's profiler on a short training: it must see kernels under spillway as well."""
    python = session.torch()
    for preload in (False, True) if python else ():
        run = session.run([session.setting.python(), SCRIPTS / "profiled.py"], preload=preload,
                          seconds=60)
        training.report(session, "under spillway" if preload else "bare", run)


@row(order=70, seconds=500, cost=130, again=False, depends="library tests/torch",
     decides="every script of `tests/torch` in all modes")
def corpus(session):
    """Every script of tests/torch in all modes: it ends well, and PyTorch's figures agree."""
    if session.torch() is None:
        return
    sys.path.insert(0, str(CORPUS))
    import corpus as table
    names = list(table.SCRIPTS)[:2] if session.setting.tiny else list(table.SCRIPTS)
    with concurrent.futures.ThreadPoolExecutor(1 if session.setting.simulated else AT_ONCE) as pool:
        list(pool.map(lambda name: corpus_script(session, name, table.SCRIPTS[name]), names))


def corpus_script(session, name, entry):
    if session.setting.simulated:
        session.unmeasurable(name)  # the suite torch runs them
        return
    if entry.processes > 1:
        session.skip(name, f"needs {entry.processes} GPUs")
        return
    run = session.run([session.setting.python(), CORPUS / "test_script.py", "--gpu", name],
                      seconds=300, options={"BUILD_ROOT": session.setting.root,
                                            "SPILLWAY_TEST_TORCH": session.setting.forks})
    failures = re.findall(r"^(?:FAIL|ERROR): (\w+).*", run.err, re.MULTILINE)
    reasons = re.findall(r"^\w*(?:Error|Exception)\b.*", run.err, re.MULTILINE)
    if run.status == 0:
        session.ok(name)
    elif run.status == 77 or "No module named" in run.err:
        session.skip(name, run.why())
    else:
        session.failed(name, "; ".join([*sorted(set(failures)), *reasons[:2]]) or run.why())
