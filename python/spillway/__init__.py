"""spillway in a Python program: its figures, marks in its recording, and its report.

    import spillway

    spillway.stats()["devices"][0]["live_bytes"]
    spillway.step()                   # at the beginning of each step
    with spillway.mark("eval"):       # a part of the program
        ...
    spillway.report()                 # a page, which Jupyter shows
    with spillway.paused():           # the device is lent to another program
        ...
    with spillway.tag("kv-cache"):    # names the memory that is asked for inside
        ...
    spillway.pause(tag="kv-cache")    # and moves it to the host

The program has to run under spillway: `spillway run -- python train.py`, or `spillway run --
jupyter lab`. Otherwise every function does nothing, and one line on stderr says so. `%load_ext
spillway` gives a notebook the magic `%spillway`. `python -m spillway` is the command `spillway`.
"""
from __future__ import annotations

from ._notebook import load_ipython_extension, unload_ipython_extension
from ._report import Report, report
from ._session import loaded, mark, pause, paused, resume, stats, step, tag

__all__ = ["Report", "load_ipython_extension", "loaded", "mark", "pause", "paused", "report",
           "resume", "stats", "step", "tag", "unload_ipython_extension"]
