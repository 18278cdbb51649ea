"""Ways for a row to go wrong, for the rehearsal: SPILLWAY_GPU_CHECK_FAULT=ROW:KIND,... replaces
what these rows do. tests/gpu/test_rehearsal.py says what the page must say of each."""
import os
import resource
import signal
import subprocess
import sys
import time

VARIABLE = "SPILLWAY_GPU_CHECK_FAULT"
FOREVER = 3607


def asked(text, row):
    """The kind of fault that this row shall commit, or None."""
    kinds = dict(word.split(":") for word in text.split(",") if ":" in word)
    return kinds.get(row) if kinds.get(row) in KINDS else None


def commit(kind, session):
    KINDS[kind](session)


def hang(session):
    session.ok("the first half")
    time.sleep(FOREVER)


def hang_deaf(session):
    """Ignores every signal that can be ignored."""
    for number in (signal.SIGTERM, signal.SIGABRT, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    hang(session)


def stop(session):
    """Stops itself, as a debugger would."""
    os.kill(os.getpid(), signal.SIGSTOP)


def crash(session):
    session.ok("the first half")
    os.kill(os.getpid(), signal.SIGSEGV)


def killed(session):
    """Dies as by the kernel when memory is out."""
    os.kill(os.getpid(), signal.SIGKILL)


def grandchild(session):
    """Leaves a process behind that holds its output open."""
    subprocess.Popen(["sleep", str(FOREVER)])
    session.ok("its own part")


def escaped(session):
    """Leaves a process behind in a session of its own, whose parent is gone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", str(FOREVER)])
        os._exit(0)
    session.ok("its own part")


def hang_family(session):
    """Hangs with children that ignore signals and have sessions of their own."""
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(FOREVER)
    time.sleep(FOREVER)


def nested_hang(session):
    """A program of the row hangs; the row itself goes on."""
    run = session.run([sys.executable, "-c", f"import time; time.sleep({FOREVER})"], seconds=1)
    session.failed("a program of the row", run.why())


def nested_long(session):
    """A program of the row takes longer than the call lasts."""
    session.ok("the first half")
    session.run(["sleep", str(FOREVER)], seconds=FOREVER)


def wrong_long(session):
    """Something is wrong before that."""
    session.wrong("4096 words", "17 differ")
    nested_long(session)


def wrong(session):
    session.wrong("4096 words", "17 differ")


def lie(session):
    """Claims that all is well and ends as if it were not."""
    session.ok("everything")
    session.note("end", "end")
    sys.stdout.flush()
    os._exit(3)


def partial(session):
    """Ends inside a line of its findings."""
    session.ok("the first half")
    with open(session.folder / "findings.jsonl", "a") as file:
        file.write('{"state": "ok", "subject": "the seco')
        file.flush()
        os._exit(0)


def incomplete(session):
    """Ends early, but as if it were done."""
    session.ok("the first half")
    os._exit(0)


def silent(session):
    """Has nothing to report."""


def garbage(session):
    """Writes bytes at random where findings and output belong."""
    noise = bytes(range(256)) * 64
    os.write(1, noise)
    os.write(2, noise)
    with open(session.folder / "findings.jsonl", "ab") as file:
        file.write(noise)
        file.write(b'\n{"state": "ok", "subject": 7}\n[[[[\n{"state": "divine"}\n')
        file.write(b'{"state": "figure", "subject": "time", "value": NaN}\n')


def markup(session):
    """Findings that would break the page: bars, line ends, escape sequences, great length."""
    session.figure("a | b\nc \x1b[31m `d`", "x" * 10000)
    session.ok("e | f", "| --- |")


def data(session):
    """Attaches numbers, which is no fault."""
    session.data({"bytes": [1, 2]})
    session.data({"more": {"seconds": 0.5}})
    session.ok("everything")


def flood(session):
    """Writes without end."""
    noise = b"noise " * 100000
    while True:
        os.write(1, noise)


def memory(session):
    """Takes memory until it gets no more."""
    resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
    kept = []
    while True:
        kept.append(bytearray(16 << 20))


def error(session):
    session.ok("the first half")
    raise RuntimeError("on purpose")


def no_folder(session):
    """Removes the files that explain it."""
    session.ok("everything")
    for path in session.folder.iterdir():
        path.unlink()


def unreadable(session):
    """Makes its findings unreadable: a folder where the file belongs."""
    (session.folder / "findings.jsonl").mkdir()


KINDS = {"hang": hang, "hang-deaf": hang_deaf, "stop": stop, "crash": crash, "killed": killed,
         "grandchild": grandchild, "escaped": escaped, "hang-family": hang_family,
         "nested-hang": nested_hang, "nested-long": nested_long,
         "wrong-long": wrong_long, "wrong": wrong, "lie": lie, "partial": partial,
         "incomplete": incomplete, "silent": silent, "garbage": garbage, "markup": markup,
         "data": data, "flood": flood, "memory": memory, "error": error, "no-folder": no_folder,
         "unreadable": unreadable}
