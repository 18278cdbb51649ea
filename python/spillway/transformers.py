"""The memory of a training run in the logs of transformers' Trainer."""
from __future__ import annotations

from typing import Any

import transformers

from ._meter import Meter


class MemoryCallback(transformers.TrainerCallback):
    """Adds spillway's figures to each log of the loss (docs/recipes/integrations.md). It must run
    before the callbacks of the trackers; `log_memory` inserts it there."""

    def __init__(self) -> None:
        self._meter = Meter()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._meter.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._meter.end()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None,
               **kwargs: Any) -> None:
        """Trackers get `logs`. The history has a copy, so the copy gets the figures too."""
        if logs is not None and "loss" in logs:
            figures = self._meter.read()
            logs.update(figures)
            state.log_history[-1].update(figures)


def log_memory(trainer: transformers.Trainer) -> None:
    """Adds spillway's figures to each log of the loss of this trainer: held memory, spilled memory,
    moves and waits. All trackers get them, and `trainer.state.log_history` has them. Without
    spillway in the process it adds nothing, and one line on stderr reports this."""
    trainer.callback_handler.callbacks.insert(0, MemoryCallback())
