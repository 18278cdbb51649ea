"""spillway in a Python program: its figures, marks in its recording, and its report.

    import spillway

    spillway.stats()["devices"][0]["live_bytes"]
    spillway.step()                   # at the beginning of each step
    with spillway.mark("eval"):       # a part of the program
        ...
    spillway.report()                 # a page, which Jupyter shows
    with spillway.paused():           # another program can use the device
        ...
    with spillway.tag("kv-cache"):    # tags the memory that is allocated here
        ...
    spillway.pause(tag="kv-cache")    # moves that memory to the host

The program must run under spillway: `spillway run -- python train.py`, or `spillway run -- jupyter
lab`. Otherwise the functions do nothing, and one line on stderr reports this. `%load_ext spillway`
adds the magic `%spillway` to a notebook. `python -m spillway` is the command `spillway`.
"""
from __future__ import annotations

from ._notebook import load_ipython_extension, unload_ipython_extension
from ._report import Report, report
from ._session import loaded, mark, pause, paused, resume, stats, step, tag

__all__ = ["Report", "load_ipython_extension", "loaded", "mark", "pause", "paused", "report",
           "resume", "stats", "step", "tag", "unload_ipython_extension"]
