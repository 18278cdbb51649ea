"""How calls arrive: by NVIDIA's runtime, linked, and by the two look-ups."""
import pathlib
import re
import shutil

from rows import compare, row
from setting import SOURCE


@row(order=300, seconds=120, cost=22, depends="library command",
     decides="whether `spillway doctor` is true on a real machine")
def doctor(session):
    """`spillway doctor --measure`: what spillway itself finds on this machine."""
    run = session.run([f"{session.setting.root}/spillway", "doctor",
                       *([] if session.setting.tiny else ["--measure"])], seconds=100)
    if run.status != 0:
        session.failed("doctor", run.why())
    elif session.setting.simulated:
        session.unmeasurable("doctor")
    for line in (run.out.splitlines() if run.status == 0 else ())[:120]:
        subject, _, value = line.strip().partition(": ")
        if subject:
            session.note("figure" if not session.setting.simulated else "unmeasurable", subject,
                         value)


@row(order=310, seconds=120, cost=3, beside=True, depends="library programs",
     decides="calls of the dynamic runtime are intercepted")
def door_runtime(session):
    """The dynamic runtime: the same answers bare, preloaded and by `spillway run`."""
    program = session.program("door_runtime")
    if program is None:
        return
    compare.programs(session, "dynamic runtime", [program])
    if session.setting.simulated:
        session.unmeasurable("spillway run")
        return
    run = session.run([f"{session.setting.root}/spillway", "run", "--", program])
    if run.status == 0:
        session.ok("by `spillway run`")
    else:
        session.failed("by `spillway run`", run.why())


@row(order=320, seconds=180, cost=2, beside=True, depends="library programs",
     decides="calls of the static runtime are intercepted")
def door_static(session):
    """The static runtime, built in or built here."""
    if session.setting.simulated:
        session.unmeasurable("static runtime")
        return
    program = session.setting.program("door_static") or build_static(session)
    if program is not None:
        compare.programs(session, "static runtime", [program])


def build_static(session):
    """A program with NVIDIA's static runtime, by the compiler that is here."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    program = pathlib.Path(session.folder) / "door_static"
    if not pathlib.Path(nvcc).exists():
        session.skip("static runtime", "neither bundled, nor is nvcc here")
        return None
    run = session.run([nvcc, "-cudart", "static", "-Xcompiler",
                       "-fno-strict-aliasing,-D_GNU_SOURCE", "-o", program,
                       SOURCE / "tests/preload/door_runtime.c", "-ldl"], seconds=100)
    if run.status != 0:
        session.skip("static runtime", f"nvcc: {run.why()}")
        return None
    return program


@row(order=330, seconds=120, cost=5, beside=True, depends="library programs",
     decides="calls of linked programs, and by both look-ups, are intercepted")
def door_driver(session):
    """The driver, linked, by dlsym, and by both versions of cuGetProcAddress."""
    if session.program("door_linked"):
        compare.programs(session, "linked", [session.program("door_linked")])
    program = session.program("door_lookup")
    for door in ("dlsym", "proc_v1", "proc_v2") if program else ():
        compare.programs(session, door, [program, door])


@row(order=340, seconds=180, cost=40, beside=True,
     depends="library tests/gpu/scripts/product.py",
     decides="every allocator setting of PyTorch has its effect, and its own figures stay true")
def door_torch(session):
    """PyTorch with each setting of its allocator: which calls arrive, and what it reports."""
    python = session.torch()
    if python is None:
        return
    script = SOURCE / "tests/gpu/scripts/product.py"
    for setting in ("", "expandable_segments:True", "backend:cudaMallocAsync"):
        options = {"PYTORCH_ALLOC_CONF": setting} if setting else {}
        what = setting or "no setting"
        for preload in (False, True):
            run = session.run([python, script], preload=preload, options=options)
            name = f"{what}, {'under spillway' if preload else 'bare'}"
            if run.status != 0:
                session.failed(name, run.why())
                continue
            memory = re.findall(r"^memory: (.*)$", run.out, re.MULTILINE)
            session.figure(name, "; ".join(memory))
            if preload and run.stats is not None:
                session.figure(f"{name}, counted",
                               f"mode {run.stats['mode']}, {compare.counters(run)}")
            elif preload:
                session.failed(name, "no statistics: spillway saw no CUDA")
    show_needed(session, session.setting.python())


def show_needed(session, python):
    """The libraries that PyTorch's own name: which driver and runtime they find."""
    run = session.run([python, "-c", "import importlib.util as u, pathlib as p; "
                       "print(p.Path(u.find_spec('torch').origin).parent / 'lib')"])
    for name in ("libc10_cuda.so", "libtorch_cuda.so") if shutil.which("readelf") else ():
        found = session.run(["readelf", "-d", f"{run.out.strip()}/{name}"])
        needed = re.findall(r"NEEDED.*\[(.*?)\]", found.out)
        session.figure(f"{name} needs", ", ".join(name for name in needed if "cu" in name))
