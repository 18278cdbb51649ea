"""Figures and marks of this process."""
from __future__ import annotations

import contextlib
import os
import threading
import unicodedata
from typing import Any, Iterator

from ._library import library

NOT_SUPPORTED = 801  # CUDA_ERROR_NOT_SUPPORTED


def loaded() -> bool:
    """True if libspillway.so is in this process."""
    return library.loaded


def stats() -> dict[str, Any]:
    """The figures of this process now, by the names of the statistics file
    (docs/reference/statistics.md): pid, mode, policy, recording, and for each device all counters.

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


_tags = threading.local()  # of each thread: the tag that it has now


@contextlib.contextmanager
def tag(name: str) -> Iterator[None]:
    """Tags the memory that this thread asks for inside: `with spillway.tag("kv-cache"): ...`, or
    `@spillway.tag("kv-cache")` above a function. Inside another tag the inner one counts. Pauses,
    reports and policies go by tags. Of PyTorch's memory, what its backward threads ask for is not
    inside; with PyTorch's own cache, whole segments of the cache are tagged.

    ValueError for a name that is empty, longer than 63 bytes of UTF-8, or has control
    characters."""
    text, before = str(name), getattr(_tags, "name", "")
    encoded = text.encode(errors="replace")
    if not 0 < len(encoded) < 64 or any(unicodedata.category(char) == "Cc" for char in text):
        raise ValueError(f"a tag has 1 to 63 bytes and no control characters: {text[:80]!r}")
    if library.call("spillway_tag", encoded) == NOT_SUPPORTED:
        library.say("tags have no effect, as call sites are not recorded (SPILLWAY_SITES=off)")
    _tags.name = text
    try:
        yield
    finally:
        _tags.name = before
        library.call("spillway_tag", before.encode(errors="replace"))


def pause(rule: str | None = None, *, tag: str | None = None) -> bool:
    """Moves the device memory of this process to the host, or only that of a rule of its policy or
    of a tag, as far as it can move, and gives what is free to the driver. Tensors stay valid: what
    is used meanwhile is read from the host, slowly. False if nothing has moved: memory cannot move,
    a device did not become idle, or nothing has that name."""
    return _call("spillway_pause", rule, tag) == 0


def resume(rule: str | None = None, *, tag: str | None = None) -> bool:
    """Moves all of it back, or only that of a rule or a tag, as far as the devices have room. False
    if nothing has that name."""
    return _call("spillway_resume", rule, tag) == 0


def _call(function: str, rule: str | None, tag: str | None) -> int | None:
    if rule is not None and tag is not None:
        raise ValueError("expected a rule or a tag, not both")
    if rule is None and tag is None:
        return library.call(function)
    kind, name = ("rule", rule) if rule is not None else ("tag", tag)
    return library.call(f"{function}_{kind}", str(name).encode(errors="replace"))


@contextlib.contextmanager
def paused(rule: str | None = None, *, tag: str | None = None) -> Iterator[bool]:
    """Lends the device for a while: `with spillway.paused(): subprocess.run(...)`."""
    done = pause(rule, tag=tag)
    try:
        yield done
    finally:
        if done:
            resume(rule, tag=tag)
