"""Trains a small model with Lightning, with spillway's figures in its logs.

    lightning_logged.py FOLDER        TensorBoard's events go there; prints what it holds as JSON
"""
import json
import sys
import warnings

import pytorch_lightning
import spillway
import spillway.lightning
import torch
from pytorch_lightning.loggers import TensorBoardLogger

WIDTH = 1024


class Model(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(8)])

    def training_step(self, batch, _):
        loss = self.layers(batch[0]).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


class Witness(pytorch_lightning.Callback):
    """What the process holds at the end of each batch."""
    live = []

    def on_train_batch_end(self, *_):
        devices = spillway.stats().get("devices")
        self.live += [devices[0]["live_bytes"]] if devices else []


def main():
    warnings.simplefilter("ignore")
    data = torch.utils.data.TensorDataset(torch.ones(64, WIDTH))
    trainer = pytorch_lightning.Trainer(
        max_epochs=1, log_every_n_steps=2, accumulate_grad_batches=2, devices=1,
        logger=TensorBoardLogger(sys.argv[1]), enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[spillway.lightning.MemoryCallback(), Witness()])
    trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=8))
    print(json.dumps({"live": Witness.live, "steps": trainer.global_step}))


if __name__ == "__main__":
    main()
