#!/usr/bin/env python3
"""Trains the models of rows of the benchmark `fit` for some steps each and prints, for each,
PyTorch's peaks as JSON.

    train.py '[{"model": "VGG16", "optimizer": "Adam", "batch": 100}]'

The loops are those of the sources, written anew: what is alive when is the same. Models are built
without values, since the simulated GPU computes none.
"""
import gc
import importlib
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import convnets  # pylint: disable=wrong-import-position
import older  # pylint: disable=wrong-import-position
import tuning  # pylint: disable=wrong-import-position

DEVICE = torch.device("cuda")
# What PyTorch says when memory is short; the second when no engine of cuDNN got a workspace.
SHORT = ("out of memory", "unable to find an engine")


def place(module, made):
    """Gives a model that was built without memory the memory of the device, in the order in which
    `.to` does; what is shared stays shared, a module that two others hold too."""
    for child in module.children():
        place(child, made)
    for kind in (module._parameters, module._buffers):  # pylint: disable=protected-access
        for name, tensor in kind.items():
            if tensor is None:
                continue
            if id(tensor) not in made:
                fresh = torch.empty_like(tensor, device=DEVICE)
                if kind is module._parameters:  # pylint: disable=protected-access
                    fresh = torch.nn.Parameter(fresh, tensor.requires_grad)
                made[id(tensor)] = (fresh, tensor)  # the old one keeps its id
                made[id(fresh)] = (fresh, tensor)
            kind[name] = made[id(tensor)][0]
    return module


def make_optimizer(row, model):
    return getattr(torch.optim, row["optimizer"])(params=model.parameters(), lr=0.001)


def dropper(row, optimizer):
    """A function that drops the gradients at one place of a step: 0 is before the data is moved,
    1 before the backward pass, 2 after the optimizer."""
    def drop(place_of_step):
        if place_of_step == row.get("zero_grad", 0):
            optimizer.zero_grad()
    return drop


def train_on_images(row, model):
    optimizer = make_optimizer(row, model)
    drop = dropper(row, optimizer)
    criterion = torch.nn.CrossEntropyLoss()
    size = row.get("image", 86)
    for _ in range(row.get("steps", 4)):
        inputs = torch.zeros(row["batch"], 3, size, size)
        labels = torch.zeros(row["batch"], dtype=torch.long)
        drop(0)
        inputs, labels = inputs.to(DEVICE), labels.to(DEVICE)
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        drop(1)
        loss.backward()
        optimizer.step()
        _, guesses = torch.max(outputs, 1)
        drop(2)
    del guesses


def train_on_texts(row, model):
    """What a step returned, a cache of keys and values among it, lives until the next step has
    returned."""
    optimizer = make_optimizer(row, model)
    drop = dropper(row, optimizer)
    names = ["input_ids", "attention_mask", "labels"]
    for length in row.get("lengths", [row.get("length", 128)] * row.get("steps", 4)):
        batch = {name: torch.zeros(row["batch"], length, dtype=torch.long) for name in names}
        drop(0)
        batch = {name: value.to(DEVICE) for name, value in batch.items()}
        outputs = model(**batch)
        drop(1)
        loss = outputs.loss
        loss.backward()
        optimizer.step()
        drop(2)


def tune(row, model):
    tuning.train(row, model, DEVICE)


def own(row):
    """The module that builds and trains a row of a source with a loop of its own, or None."""
    return importlib.import_module(row["loop"]) if "loop" in row else None


def build(row):
    """The model without memory: its figures are those of the published one."""
    with torch.device("meta"):
        if "loop" in row:
            return own(row).build(row)
        if row["model"] in convnets.NETS:
            return convnets.NETS[row["model"]]()
        import texts  # pylint: disable=import-outside-toplevel
        torch.set_default_dtype(getattr(torch, row.get("dtype", "float32")))
        model = texts.build(row["model"])
        torch.set_default_dtype(torch.float32)
        if "method" in row:
            tuning.prepare(row, model)
        return model


def measure(row):
    """Trains one row. `parameters` are bytes."""
    model = build(row)
    result = {"verdict": "fits", "parameters": sum(parameter.nbytes
                                                   for parameter in model.parameters())}
    train = train_on_images if row["model"] in convnets.NETS else \
        tune if "method" in row else train_on_texts
    try:
        model = place(model, {}).train()
        if "loop" in row:
            with older.behaviour(row):
                own(row).train(row, model, DEVICE)
        else:
            train(row, model)
    except RuntimeError as error:
        if not any(words in str(error) for words in SHORT):
            raise
        result["verdict"] = "out of memory"
    result.update(allocated=torch.cuda.max_memory_allocated(),
                  reserved=torch.cuda.max_memory_reserved())
    return result


def clear():
    """Gives everything back, so that the next row begins as a new process does."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()  # pylint: disable=protected-access
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    if torch.cuda.memory_reserved():
        sys.exit("something is left of the row before")


def main():
    rows = json.loads(sys.argv[1])
    for row in rows:
        print(json.dumps(measure(row)), flush=True)
        clear()


if __name__ == "__main__":
    main()
