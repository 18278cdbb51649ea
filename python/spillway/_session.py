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
    """Returns the figures of this process now. The keys are those of the statistics file
    (docs/reference/statistics.md): pid, mode, policy, recording, and devices with all counters.

    Returns {} if the object is not loaded. Before CUDA is in use, `devices` is empty. The figures
    are read one after the other, so they may differ by some events."""
    if library.call("spillway_version") is None:
        return {}
    return {"pid": os.getpid(), "mode": library.about("mode"), "policy": library.about("policy"),
            "recording": library.about("recording"), "devices": library.counters()}


def step() -> None:
    """Marks the beginning of a step, for example of a training iteration. The recording, the
    prediction of memory uses, and the key `nth_in_step` of policies use the mark. Call it from one
    thread, at the same place in every step."""
    library.call("spillway_mark_step")


@contextlib.contextmanager
def mark(name: str) -> Iterator[None]:
    """Marks a part of the program in the recording: `with spillway.mark("eval"): ...`, or
    `@spillway.mark("eval")` above a function. A part that begins before CUDA is in use is not
    recorded."""
    text = str(name).encode(errors="replace")
    library.call("spillway_mark_begin", text)
    try:
        yield
    finally:
        library.call("spillway_mark_end", text)


_tags = threading.local()  # of each thread: the tag that it has now


@contextlib.contextmanager
def tag(name: str) -> Iterator[None]:
    """Tags the memory that this thread allocates in the block: `with spillway.tag("kv-cache"):
    ...`, or `@spillway.tag("kv-cache")` above a function. Of nested tags, the inner one counts.
    Pauses, reports and policies use tags. PyTorch's backward threads do not have the tag. With
    PyTorch's own cache, a tag belongs to a whole segment of the cache.

    Raises ValueError if the name is empty, is longer than 63 bytes of UTF-8, or has control
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
    """Moves the device memory of this process to the host, and gives it to the driver. With `rule`
    or `tag`, moves only the memory of this rule of the policy, or of this tag. Memory that cannot
    move stays. Tensors stay valid: the device reads paused memory from the host, which is slow.
    Returns False if nothing has moved: memory cannot move, a device did not become idle, or there
    is no such rule or tag."""
    return _call("spillway_pause", rule, tag) == 0


def resume(rule: str | None = None, *, tag: str | None = None) -> bool:
    """Moves paused memory back, as much as the devices have room for. With `rule` or `tag`, moves
    only the memory of this rule or tag. Returns False if there is no such rule or tag."""
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
    """Pauses the device memory during the block: `with spillway.paused(): subprocess.run(...)`."""
    done = pause(rule, tag=tag)
    try:
        yield done
    finally:
        if done:
            resume(rule, tag=tag)
