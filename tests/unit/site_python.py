#!/usr/bin/env python3
"""Python call sites against what the interpreter says itself; run by test_site_python.py.

    site_python.py LIBRARY
"""
import asyncio
import atexit
import ctypes
import gc
import os
import sys
import threading
import warnings

import site_stack
from site_stack import BOTH, check, held, here, released

def plain(library):
    return check(library.probe_capture(), here())


def nested(depth, library=released):
    return plain(library) if depth == 0 else nested(depth - 1, library)


class Größe:
    """Names in one, two and four bytes a character."""
    def ähnlich(self):
        return check(released.probe_capture(), here())

    def 测量(self):
        return check(released.probe_capture(), here())

    def 𝔪𝔢𝔱𝔥𝔬𝔡(self):
        return check(released.probe_capture(), here())

    @property
    def value(self):
        return check(released.probe_capture(), here())

    def __del__(self):
        check(released.probe_capture(), here())


def generator(count):
    for _ in range(count):
        yield check(released.probe_capture(), here())
        yield from (check(released.probe_capture(), here()) for _ in range(2))


async def coroutine(depth):
    await asyncio.sleep(0)
    if depth:
        return await coroutine(depth - 1)
    return check(released.probe_capture(), here())


class Module:
    """Calls as torch.nn.Module does; `self` of _call_impl is shared with an inner function."""
    def __init__(self, *parts):
        self.parts = parts

    def __call__(self):
        return self._wrapped_call_impl()

    def _wrapped_call_impl(self):
        return self._call_impl()

    def _call_impl(self):
        def inner():
            return self.forward()
        return inner()


class Mixin:
    pass


class Net(Mixin, Module):
    def forward(self):
        return [part() for part in self.parts][-1]


class Block(Module):
    def forward(self):
        parts = self.parts
        del self
        return parts[0]()


class Leaf(Module):
    def forward(self):
        return plain(released)


class Linear(Leaf):
    def forward(self):
        return super().forward()


class Größer(Module):
    def forward(self):
        return (lambda: (self, plain(held))[1])()


class Given(Module):
    """Its frame gives up or replaces `self`, and no other frame is told of the module."""
    def __call__(self, instead=None):
        return self.forward(instead)

    def forward(self, instead):
        self = instead
        return plain(released)


class Function:
    def forward(self):
        return plain(released)


def modules():
    def named(site):
        return released.probe_modules(site).decode()

    long = type("L" * 100, (Leaf,), {})
    slash = type("a/b", (Leaf,), {})
    assert named(plain(released)) == ""
    assert named(Leaf()()) == "Leaf"
    assert named(Linear()()) == "Linear"
    assert named(Net(Block(Leaf()), Block(Linear()))()) == "Net/Block/Linear"
    assert named(Net(Größer())()) == "Net/Größer"
    assert named(Block(Block(Leaf()))()) == "Block/Block/Leaf"
    assert named(Block(long())()) == "Block/" + "L" * 63
    assert named(slash()()) == "a_b"
    assert named(Function().forward()) == ""
    assert named(Given()()) == ""
    assert named(Given()(instead=3)) == ""
    assert named(Given()(instead=Leaf())) == "Leaf"
    tower = Leaf()
    for i in range(10):
        tower = type(f"{i}" * 60, (Block,), {})(tower)
    assert named(tower()) == "/".join(f"{i}" * 60 for i in range(7, -1, -1)) + "/Leaf"  # cut


def comprehensions():
    [check(released.probe_capture(), here()) for _ in range(3)]
    {check(released.probe_capture(), here()) for _ in range(3)}
    {i: check(released.probe_capture(), here()) for i in range(3)}
    (lambda: check(released.probe_capture(), here()))()
    sorted([3, 1, 2], key=lambda x: check(released.probe_capture(), here()))
    list(map(lambda x: check(released.probe_capture(), here()), range(3)))


def several_lines():
    return check(
        released.probe_capture(), here())


def generated():
    """Code objects that come and go at the same address and differ in one thing only; each is seen
    so often that it is recognised the next time."""
    call = "check(released.probe_capture(), here())"
    for vary in (lambda i: ("\n" * (i % 7) + call, "text.py"), lambda i: (call, f"file{i % 5}.py"),
                 lambda i: (call, f"{i:040d}.py"), lambda i: (call, chr(0x100 + i) + ".py")):
        for i in range(200):
            code = compile(*vary(i), "exec")
            for _ in range(4):
                exec(code)
            del code
    for i in range(200):
        name = f"f{i:05d}"
        space = {"check": check, "released": released, "here": here}
        exec(compile(f"def {name}():\n  {call}", "same.py", "exec"), space)
        function = space.pop(name)
        for _ in range(4):
            function()
        del function, space, name


def shortcut():
    """One generator, resumed in turns by way of another function and straight: what the function's
    frame left behind is no part of the stack."""
    def forever():
        while True:
            yield check(released.probe_capture(), here())

    def by_way_of(steps):
        return next(steps)

    steps = forever()
    for i in range(60):
        (by_way_of, next)[i % 6 > 3](steps)


def collected():
    """A collection that runs while memory is asked for, and objects that ask when they go."""
    old = gc.get_threshold()
    gc.set_threshold(1)
    for _ in range(50):
        ring = [Größe()]
        ring.append(ring)
        del ring
        plain(released)
    gc.set_threshold(*old)
    gc.collect()


def deep(depth):
    return plain(released) if depth == 0 else deep(depth - 1)


def repeated():
    """What is recognised is not walked again, and is the same."""
    site = ctypes.c_uint()
    for library in released, held:
        library.probe_repeat(10, ctypes.byref(site))
        walks = library.probe_walks()
        first = site.value
        for _ in range(20):
            library.probe_repeat(10, ctypes.byref(site))
            walks = library.probe_walks() if _ < 5 else walks
            assert site.value != 0
        assert library.probe_walks() - walks <= 1, library.probe_walks() - walks
        assert first != 0


def alternating():
    """Two callers of one function in turns: the same inner frames, other outer ones."""
    def one():
        return nested(3)

    def two():
        return nested(3)

    sites = [(one(), two()) for _ in range(50)]
    assert all(a != b for a, b in sites)
    assert len({a for a, _ in sites}) == 1, sites
    assert len({b for _, b in sites}) == 1, sites


def threads():
    errors = []

    def work(number):
        try:
            for i in range(300):
                nested(i % 9, held if number % 2 else released)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not errors, errors


def forked():
    warnings.simplefilter("ignore", DeprecationWarning)  # that threads were running
    child = os.fork()
    if child == 0:
        status = 1
        try:
            nested(4)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def main():
    released.probe_start(BOTH)
    for _ in range(4):
        nested(5)
        nested(5, held)
        thing = Größe()
        thing.ähnlich()
        thing.测量()
        thing.𝔪𝔢𝔱𝔥𝔬𝔡()
        thing.value
        del thing
        list(generator(3))
        comprehensions()
        several_lines()
        asyncio.run(coroutine(3))
        eval(compile("\n\ncheck(released.probe_capture(), here())", "<text>", "eval"))
        modules()
    generated()
    shortcut()
    collected()
    sys.setrecursionlimit(5000)
    deep(900)
    deep(900)
    repeated()
    alternating()
    threads()
    forked()
    print(site_stack.cases)


@atexit.register
def at_exit():
    released.probe_capture()


class AtTheEnd:
    def __del__(self):
        released.probe_capture()


keep = AtTheEnd()
main()
