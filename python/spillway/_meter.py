"""Figures of a training run for its tracker."""
from __future__ import annotations

import time

from ._session import stats, step

GIB = 1 << 30
COUNTERS = ("live_bytes", "live_peak_bytes", "host_used_bytes", "spilled_bytes", "promoted_bytes",
            "stall_ns", "closed_ns")


def _counters() -> dict[str, int]:
    """Returns the sums over all devices. The result is empty without spillway, and before CUDA is
    in use."""
    devices = stats().get("devices")
    return {name: sum(device[name] for device in devices) for name in COUNTERS} if devices else {}


class Meter:
    """Measures the time of steps, and the moves and waits during them. For use by one thread."""

    def __init__(self) -> None:
        self._begun: float | None = None  # when the step that is not ended began
        self._steps = 0                   # since the last reading
        self._seconds = 0.0               # that these steps took
        self._before: dict[str, int] | None = None  # the counters at the last reading

    def begin(self) -> None:
        """Begins a step and marks it (spillway.step). Does nothing if a step has begun already."""
        if self._before is None:
            self._before = _counters()
        if self._begun is None:
            step()
            self._begun = time.perf_counter()

    def end(self) -> None:
        """Ends the current step."""
        if self._begun is not None:
            self._steps += 1
            self._seconds += time.perf_counter() - self._begun
            self._begun = None

    def read(self) -> dict[str, float]:
        """Returns the current memory of the process, and means over the steps since the last
        reading. The names begin with "spillway/". The figures are sums over the devices. The result
        is empty without spillway, before CUDA is in use, and if no step has ended."""
        now = _counters()
        if not now or self._steps == 0:
            return {}
        before = self._before or dict.fromkeys(now, 0)

        def mean(unit: float, *names: str) -> float:
            return sum(now[name] - before[name] for name in names) / unit / self._steps

        figures = {"live_gib": now["live_bytes"] / GIB,
                   "live_peak_gib": now["live_peak_bytes"] / GIB,
                   "host_gib": now["host_used_bytes"] / GIB,
                   "moved_gib": mean(GIB, "spilled_bytes", "promoted_bytes"),
                   "step_seconds": self._seconds / self._steps,
                   "wait_seconds": mean(1e9, "stall_ns"),
                   "held_seconds": mean(1e9, "closed_ns")}
        self._before, self._steps, self._seconds = now, 0, 0.0
        return {f"spillway/{name}": value for name, value in figures.items()}
