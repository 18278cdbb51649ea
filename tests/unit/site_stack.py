"""A captured call site against what the interpreter says itself of the stack, for site_python.py
and site_python_fire.py.

A case captures a site and asks for the frames in one line of code; they must be the same.
"""
import ctypes
import sys

PATH = sys.argv[1]
BOTH, MOST = 3, 64             # native and Python frames; most frames of a site

released = ctypes.CDLL(PATH)   # the lock of the interpreter is released during the call
held = ctypes.PyDLL(PATH)      # and here it is not
released.probe_modules.restype = ctypes.c_char_p
released.probe_refused.restype = ctypes.c_uint64
cases = 0                      # stacks that were compared


def frames_of(frame):
    """The frames from `frame` outwards that have begun to run: a profiler, a handler of a signal or
    a destructor may run before the first instruction of the frame that it interrupts."""
    found = []
    while frame is not None:
        if frame.f_lasti >= 0:
            found.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return found


def here():
    """The stack of the caller, as it is now."""
    return frames_of(sys._getframe(1))


def stack(site):
    """The Python frames of a site."""
    text = ctypes.create_string_buffer(1 << 16)
    count = released.probe_python(site, text, len(text))
    found = []
    for line in text.value.decode().splitlines():
        name, function, number = line.rsplit(":", 2)
        found.append((name, function, int(number)))
    assert count == len(found), (count, found)
    return found


def check(site, frames):
    """The Python frames of a site are these. Once the table of sites is full, new stacks are the
    site 0."""
    global cases
    if site == 0 and released.probe_refused() > 0:
        return site
    found, expected = stack(site), frames[:MOST]
    assert found == expected, f"\nfound    {found}\nexpected {expected}"
    cases += 1
    return site
