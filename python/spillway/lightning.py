"""The memory of a training run in the logs of Lightning's Trainer."""
from __future__ import annotations

import sys
from typing import Any

# Both packages have the same classes. The program uses the one that it has imported.
if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

from ._meter import Meter


class MemoryCallback(Callback):
    """Writes spillway's figures to all loggers of the trainer, every `log_every_n_steps` steps
    (docs/recipes/integrations.md). Without spillway in the process it writes nothing, and one line
    on stderr reports this."""

    def __init__(self) -> None:
        self._meter = Meter()
        self._ended = 0   # steps of the optimizer that have ended
        self._logged = 0  # those at the last log

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._ended = self._logged = trainer.global_step

    def on_train_batch_start(self, trainer: Any, *args: Any) -> None:
        self._meter.begin()

    def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
        if trainer.global_step == self._ended:  # gradients are accumulated: the step goes on
            return
        self._ended = trainer.global_step
        self._meter.end()
        every = trainer.log_every_n_steps  # 0: never
        if every == 0 or self._ended - self._logged < every:
            return
        self._logged = self._ended
        figures = self._meter.read()
        for logger in trainer.loggers if figures else ():
            logger.log_metrics(figures, step=self._ended - 1)  # Lightning counts from 0
