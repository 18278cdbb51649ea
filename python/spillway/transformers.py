"""The memory of a training in the logs of transformers' Trainer."""
from __future__ import annotations

from typing import Any

import transformers

from ._meter import Meter


class MemoryCallback(transformers.TrainerCallback):
    """Adds spillway's figures to each log of the loss (docs/recipes/integrations.md). It must come
    before the callbacks of the trackers, where `log_memory` puts it."""

    def __init__(self) -> None:
        self._meter = Meter()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._meter.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._meter.end()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None,
               **kwargs: Any) -> None:
        """`logs` is what the trackers get; the history has a copy of it."""
        if logs is not None and "loss" in logs:
            figures = self._meter.read()
            logs.update(figures)
            state.log_history[-1].update(figures)


def log_memory(trainer: transformers.Trainer) -> None:
    """Adds what the program holds, what is spilled, and what a step costs, to each log of the loss
    of this trainer: for all its trackers, and in `trainer.state.log_history`. Without spillway in
    the process it adds nothing, and one line on stderr says so."""
    trainer.callback_handler.callbacks.insert(0, MemoryCallback())
