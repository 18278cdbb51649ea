"""The functions of libspillway.so in this process (include/spillway.h), by ctypes.

This package never loads the object. LD_PRELOAD must load it, because the object has to be there
before CUDA is. Functions that an older object lacks are None.
"""
from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "spillway_version": (ctypes.c_int, []),
    "spillway_counter_name": (ctypes.c_char_p, [ctypes.c_size_t]),
    "spillway_counters": (ctypes.c_int,
                          [ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]),
    "spillway_about": (ctypes.c_char_p, [ctypes.c_char_p]),
    "spillway_mark_begin": (ctypes.c_int, [ctypes.c_char_p]),
    "spillway_mark_end": (ctypes.c_int, [ctypes.c_char_p]),
    "spillway_mark_step": (ctypes.c_int, []),
    "spillway_pause": (ctypes.c_int, []),
    "spillway_pause_rule": (ctypes.c_int, [ctypes.c_char_p]),
    "spillway_pause_tag": (ctypes.c_int, [ctypes.c_char_p]),
    "spillway_resume": (ctypes.c_int, []),
    "spillway_resume_rule": (ctypes.c_int, [ctypes.c_char_p]),
    "spillway_resume_tag": (ctypes.c_int, [ctypes.c_char_p]),
    "spillway_tag": (ctypes.c_int, [ctypes.c_char_p]),
}

NOT_LOADED = ("spillway is not loaded in this process, so the functions of the package `spillway` "
              "do nothing: start the program with `spillway run -- python ...` "
              "(or `spillway sim`)")
TOO_OLD = ("the libspillway.so in this process is older than the package `spillway`: "
           "some of its functions do nothing")


class Library:
    """The functions and texts of the libspillway.so in this process."""

    def __init__(self) -> None:
        self._process = ctypes.CDLL(None)
        self._functions = {name: self._find(name, *signature)
                           for name, signature in _SIGNATURES.items()}
        self._lock = threading.Lock()
        self._said: set[str] = set()

    def _find(self, name: str, result: Any, arguments: list[Any]) -> Any:
        function = getattr(self._process, name, None)
        if function is not None:
            function.restype, function.argtypes = result, arguments
        return function

    @property
    def loaded(self) -> bool:
        return self._functions["spillway_version"] is not None

    def call(self, name: str, *arguments: Any) -> Any:
        """Calls the function and returns its result. If there is no such function, says so once and
        returns None."""
        function = self._functions[name]
        if function is None:
            self.say(TOO_OLD if self.loaded else NOT_LOADED)
            return None
        return function(*arguments)

    def say(self, text: str) -> None:
        """Writes a line to stderr, once in this process, without control characters."""
        text = "".join(c if c.isprintable() else "?" for c in text)
        with self._lock:
            if text in self._said:
                return
            self._said.add(text)
        if sys.stderr is None:
            return
        try:
            print(f"spillway: {text}", file=sys.stderr, flush=True)
        except (OSError, ValueError):
            pass  # it is closed, or full

    def about(self, name: str) -> str:
        """Returns a text about this process, or "" if it is not known."""
        text = self.call("spillway_about", name.encode())
        return text.decode(errors="replace") if text else ""

    def counters(self) -> list[dict[str, Any]]:
        """Returns the counters of each device, by name. `driver_calls` has the number of calls of
        each driver function. Returns an empty list before CUDA is in use."""
        names: list[str] = []
        while True:
            name = self.call("spillway_counter_name", len(names))
            if name is None:
                break
            names.append(name.decode())
        values = (ctypes.c_uint64 * len(names))()
        devices: list[dict[str, Any]] = []
        while names and self.call("spillway_counters", len(devices), values, len(names)) == 0:
            counters = dict(zip(names, values))
            calls = {name: counters.pop(name) for name in names if name.startswith("cu")}
            devices.append({"ordinal": len(devices), **counters, "driver_calls": {
                name: count for name, count in calls.items() if count > 0}})
        return devices

    def path(self) -> str | None:
        """Returns the file of the object, or None if it is not loaded or its file is not known."""
        function = self._functions["spillway_about"]
        path = function(b"object") if function is not None else None
        return os.fsdecode(path) if path else None


library = Library()
