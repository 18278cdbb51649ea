#!/usr/bin/env python3
"""Python call sites under fire: one scenario, for some seconds; run by test_site_python_fire.py.

    site_python_fire.py LIBRARY SCENARIO SECONDS

Prints how many stacks were compared with what the interpreter says itself. Exits with 77 where this
interpreter cannot run the scenario.
"""
import asyncio
import gc
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import warnings

import site_stack
from site_stack import BOTH, check, held, here, released

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = released, held
THREADS = 4


class Unavailable(Exception):
    """This interpreter cannot run the scenario."""


class Clock:
    """Tells when the scenario's time is up."""
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def runs(self):
        return time.monotonic() < self.end


def in_threads(clock, *workers):
    """Each worker runs again and again in a thread of its own, with the number of the round."""
    errors = []

    def work(worker):
        try:
            turn = 0
            while clock.runs() and not errors:
                worker(turn)
                turn += 1
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def plain(library=released):
    return check(library.probe_capture(), here())


def nested(depth, library=released):
    return plain(library) if depth == 0 else nested(depth - 1, library)


def make(turn):
    """A function of new code; names and lines repeat after some rounds, addresses at any time."""
    name, lines = f"made_{turn % 17}", "\n" * (turn % 5)
    space = {"plain": plain, "check": check, "here": here, "library": LIBRARIES[turn % 2]}
    exec(compile(f"{lines}def {name}(depth=2):\n"
                 f"    if depth:\n        return {name}(depth - 1)\n"
                 "    plain()\n"
                 "    return check(library.probe_capture(), here())\n",
                 f"made_{turn % 13}.py", "exec"), space)
    return space[name]


def churn(clock):
    """Threads make and drop functions and code objects while others ask for memory."""
    kept = []

    def keep(turn):
        kept.append(make(turn))
        kept[turn % len(kept)]()
        if len(kept) > 40:
            del kept[:20]

    in_threads(clock, lambda turn: make(turn)(), keep, lambda turn: nested(turn % 30, held),
               lambda turn: gc.collect(turn % 3))


def generators(clock):
    """Generators that are resumed by other threads than the one that made them, closed half way,
    and collected while they are suspended."""
    def leaf(depth):
        try:
            yield check(released.probe_capture(), here())
            yield check(held.probe_capture(), here())
        finally:
            check(released.probe_capture(), here())

    def tree(depth):
        yield from leaf(depth) if depth == 0 else tree(depth - 1)
        yield from (plain() for _ in range(2))

    lock, waiting = threading.Lock(), []

    def work(turn):
        with lock:
            one = waiting.pop(turn % len(waiting)) if len(waiting) > 20 else tree(turn % 12)
        try:
            next(one)
            next(one)
        except StopIteration:
            return
        if turn % 7 == 0:
            one.close()
        elif turn % 11 != 0:
            with lock:
                waiting.append(one)

    async def awaited(depth):
        await asyncio.sleep(0)
        return await awaited(depth - 1) if depth else plain()

    async def tasks():
        await asyncio.gather(*(awaited(depth) for depth in range(8)))

    in_threads(clock, *[work] * (THREADS - 1), lambda turn: asyncio.run(tasks()))
    waiting.clear()


def greenlets(clock):
    """Stacks that are exchanged under the interpreter."""
    try:
        import greenlet
    except ImportError:
        raise Unavailable("there is no package greenlet") from None

    def body(depth):
        if depth:
            return body(depth - 1)
        plain()
        greenlet.getcurrent().parent.switch()
        plain(held)

    def work(turn):
        running = [greenlet.greenlet(body) for _ in range(6)]
        for depth, one in enumerate(running):
            one.switch(depth + turn % 9)
        for one in running if turn % 3 else running[::2]:
            one.switch()

    in_threads(clock, *[work] * THREADS)


def recursion(clock):
    """10,000 calls deep; of a stack the innermost frames are kept."""
    sys.setrecursionlimit(12_000)
    threading.stack_size(256 << 20)

    def down(depth):
        if depth % 2500 == 0:
            plain()
        if depth:
            down(depth - 1)
        elif held.probe_capture() == 0:
            raise AssertionError("no site")

    in_threads(clock, lambda turn: down(10_000), lambda turn: nested(9000 + turn % 3))


def exceptions(clock):
    """Memory is asked for while exceptions travel, are caught, and hold on to frames."""
    kept = []

    class Manager:
        def __enter__(self):
            plain()

        def __exit__(self, *about):
            plain(held)
            return about[0] is KeyError

    def throw(depth, kind):
        try:
            if depth:
                throw(depth - 1, kind)
            with Manager():
                raise KeyError
            raise kind(str(depth))
        except RuntimeError as error:
            plain()
            kept.append(error)  # the traceback keeps every frame
            raise
        finally:
            check(released.probe_capture(), here())

    def work(turn):
        try:
            throw(turn % 20, (RuntimeError, ValueError)[turn % 2])
        except (RuntimeError, ValueError):
            plain()
        if turn % 50 == 0:
            kept.clear()

    in_threads(clock, *[work] * THREADS)


def finalisation(clock):
    """Interpreters that end while threads, exit handlers and destructors ask for memory."""
    script = """
import atexit, sys, threading, time
sys.path.insert(0, sys.argv[2])
import site_stack
from site_stack import check, here, released, held
released.probe_start(site_stack.BOTH)
class Late:
    def __del__(self):
        released.probe_capture()
        held.probe_capture()
atexit.register(lambda: check(released.probe_capture(), here()))
check(released.probe_capture(), here())  # threads that begin meanwhile wait 20 ms at most
site_stack.cases = 0
def forever():
    while True:
        check(released.probe_capture(), here())
        held.probe_capture()
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
keep, ring = Late(), [Late()]
ring.append(ring)
time.sleep(float(sys.argv[3]))
end = time.monotonic() + 30  # the threads may not have had a processor yet
while site_stack.cases == 0 and time.monotonic() < end:
    time.sleep(0.005)
assert site_stack.cases > 0
"""
    turn = 0
    while clock.runs():
        done = subprocess.run([sys.executable, "-c", script, site_stack.PATH, str(HERE),
                               str(turn % 5 / 100 + 0.005)], capture_output=True, text=True,
                              timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        site_stack.cases += 1
        turn += 1


def forks(clock):
    """Children of a process with threads that ask for memory."""
    warnings.simplefilter("ignore", DeprecationWarning)  # that threads are running

    def fork(turn):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                nested(turn % 9)
                make(turn)()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0

    in_threads(clock, fork, lambda turn: nested(turn % 40), lambda turn: make(turn)())


def subinterpreters(clock):
    """Code in interpreters that come and go in one process. A thread has one thread state for the
    functions of the C interface: a site there shows the frames of the interpreter that runs, or
    those of the thread's first interpreter, which called it."""
    try:
        import _interpreters as interpreters
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            raise Unavailable("there are no subinterpreters") from None
    inner = """
import json, sys
sys.argv = ["", path]
sys.path.insert(0, folder)
try:
    import site_stack
except ImportError:
    result = -1
else:
    outer = [tuple(frame) for frame in json.loads(frames)]
    def deep(depth):
        if depth:
            return deep(depth - 1)
        site = site_stack.released.probe_capture(); own = site_stack.here()
        try:
            site_stack.check(site, own)
        except AssertionError:
            assert site_stack.stack(site)[1:] == outer[1:], (site_stack.stack(site), outer)
    for i in range(20):
        deep(i)
    result = 20
with open(answer, "w") as file:
    file.write(str(result))
"""
    answer = f"/tmp/site_python_fire.{os.getpid()}"
    settings = {"isolated": False} if sys.version_info[:2] in ((3, 9), (3, 10), (3, 11), (3, 12)) \
        else {}
    while clock.runs():
        one = interpreters.create(**settings)
        words = {"path": site_stack.PATH, "folder": str(HERE), "answer": answer,
                 "frames": json.dumps(here())}
        code = "".join(f"{name} = {value!r}\n" for name, value in words.items()) + inner
        failed = interpreters.run_string(one, code)
        assert failed is None, failed
        interpreters.destroy(one)
        with open(answer) as file:
            count = int(file.read())
        os.unlink(answer)
        if count < 0:
            raise Unavailable("a subinterpreter cannot import ctypes")
        site_stack.cases += count
        plain()


def profilers(clock):
    """Functions of the profiler and of the tracer ask for memory between any two events."""
    busy = threading.local()

    def hook(frame, event, argument):
        if not getattr(busy, "inside", False):
            busy.inside = True
            try:
                check(released.probe_capture(), here())
            finally:
                busy.inside = False
        return hook

    def work(turn):
        (sys.setprofile if turn % 2 else sys.settrace)(hook)
        try:
            nested(turn % 7)
            list(x for x in range(3))
            make(turn)()
        finally:
            sys.setprofile(None)
            sys.settrace(None)
        nested(turn % 7, held)

    in_threads(clock, *[work] * 3)


def signals(clock):
    """Handlers that run between two instructions of whatever the main thread does."""
    handled = []

    def handler(number, frame):
        handled.append(check(released.probe_capture(), here()))
        make(len(handled))()
        if clock.runs():  # the next one only now, so that handlers do not pile up
            signal.setitimer(signal.ITIMER_REAL, 0.001)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    other = threading.Thread(target=in_threads, args=(clock, lambda turn: make(turn)()))
    other.start()
    turn = 0
    while clock.runs():
        # A handler may run between a capture and the question for the frames; it changes neither.
        nested(turn % 11, LIBRARIES[turn % 2])
        turn += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    other.join()
    assert handled


SCENARIOS = {function.__name__: function for function in (
    churn, generators, greenlets, recursion, exceptions, finalisation, forks, subinterpreters,
    profilers, signals)}


def main():
    scenario, seconds = SCENARIOS[sys.argv[2]], float(sys.argv[3])
    released.probe_start(BOTH)
    # Threads whose first capture is at the same time as this one wait for it 20 ms at most.
    check(released.probe_capture(), here())
    site_stack.cases = 0
    try:
        scenario(Clock(seconds))
    except Unavailable as reason:
        print(reason)
        sys.exit(77)
    print(site_stack.cases)


if __name__ == "__main__":
    main()
