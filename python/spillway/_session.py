"""Figures and marks of this process."""
from __future__ import annotations

import contextlib
import os
from typing import Any, Iterator

from ._library import library


def loaded() -> bool:
    """True if libspillway.so is in this process."""
    return library.loaded


def stats() -> dict[str, Any]:
    """The figures of this process now, by the names of the statistics file
    (docs/statistics.md): pid, mode, policy, recording, and for each device all counters.

    Empty if the object is not loaded; without devices before CUDA is in use. Figures that are
    read one after the other may belong to different moments."""
    if library.call("spillway_version") is None:
        return {}
    return {"pid": os.getpid(), "mode": library.about("mode"), "policy": library.about("policy"),
            "recording": library.about("recording"), "devices": library.counters()}


def step() -> None:
    """Marks the beginning of a step, for example of a training iteration: for the recording, for
    spillway to learn which memory a step uses when, and for the key `nth_in_step` of a policy. Call
    it from one thread, at the same place in every step."""
    library.call("spillway_mark_step")


@contextlib.contextmanager
def mark(name: str) -> Iterator[None]:
    """Marks a part of the program in the recording: `with spillway.mark("eval"): ...`, or
    `@spillway.mark("eval")` above a function. A part that begins before CUDA is in use is not
    seen."""
    text = str(name).encode(errors="replace")
    library.call("spillway_mark_begin", text)
    try:
        yield
    finally:
        library.call("spillway_mark_end", text)


def pause(rule: str | None = None) -> bool:
    """Moves the device memory of this process, or that of a rule of its policy, to the host, as far
    as it can move, and gives what is free to the driver. Tensors stay valid: what is used meanwhile
    is read from the host, slowly. False if nothing has moved: memory cannot move, a device did not
    become idle, or there is no such rule."""
    if rule is None:
        return library.call("spillway_pause") == 0
    return library.call("spillway_pause_rule", str(rule).encode(errors="replace")) == 0


def resume() -> None:
    """Moves it back, as far as the devices have room."""
    library.call("spillway_resume")


@contextlib.contextmanager
def paused(rule: str | None = None) -> Iterator[bool]:
    """Lends the device for a while: `with spillway.paused(): subprocess.run(...)`."""
    done = pause(rule)
    try:
        yield done
    finally:
        resume()
