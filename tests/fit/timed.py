#!/usr/bin/env python3
"""Runs the programs of rows of the benchmark `times` on the simulated GPU, for a few steps each,
and prints the simulator's estimate of a step for each as JSON.

    timed.py '[{"program": "timm", "model": "resnet50", "mode": "train", "batch": 512}]'

The loops do what those of the sources do in a step. Models are built without values, since the
simulated GPU computes none.
"""
import ctypes
import gc
import importlib
import json
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = torch.device("cuda")
STEPS = 4  # the first one may differ


class Step(ctypes.Structure):
    """struct spillway_sim_step of src/sim/driver/core/control.h"""
    _fields_ = [(name, ctypes.c_ulonglong)
                for name in ("kernels", "ns", "kernels_ns", "known_kernels_ns")]


def last_step():
    step = Step()
    ctypes.CDLL("libcuda.so.1").spillway_sim_step(0, ctypes.byref(step))
    return {name: getattr(step, name) for name, _ in Step._fields_}


def timm(row):
    """benchmark.py of timm: mixed precision; SGD with momentum when it trains."""
    library = importlib.import_module("timm")
    importlib.import_module("timm.layers").set_fused_attn(row.get("fused", True))
    layout = torch.channels_last if row.get("channels_last") else torch.contiguous_format
    try:
        with torch.device("meta"):
            model = library.create_model(row["model"])
    except (RuntimeError, NotImplementedError):  # its making needs numbers
        model = library.create_model(row["model"])
    model = model.to_empty(device=DEVICE).to(memory_format=layout)
    images = torch.zeros(row["batch"], 3, row["image"], row["image"], device=DEVICE).contiguous(
        memory_format=layout)
    if row["mode"] == "infer":
        model.eval()
        for _ in range(STEPS):
            with torch.no_grad(), torch.autocast("cuda", torch.float16):
                model(images)
            torch.cuda.synchronize()
        return
    model.train()
    labels = torch.zeros(row["batch"], dtype=torch.long, device=DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4)
    criterion = torch.nn.CrossEntropyLoss()
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            outputs = model(images)
        criterion(outputs, labels).backward()
        optimizer.step()
        torch.cuda.synchronize()


def build_language(row):
    transformers = importlib.import_module("transformers")
    config = getattr(transformers, row["config"])(**row["shape"])
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, row.get("dtype", "bfloat16")))
    model = model.to_empty(device=DEVICE)
    model.tie_weights()
    if row.get("adapter"):
        peft = importlib.import_module("peft")
        adapter = dict(row["adapter"])
        kind = getattr(peft, adapter.pop("kind"))
        model = peft.get_peft_model(model, kind(task_type="CAUSAL_LM", **adapter))
    return model


def language(row):
    """A causal language model of transformers, finetuned with or without an adapter of PEFT."""
    model = build_language(row)
    model.train()
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)
    for _ in range(STEPS):
        words = torch.zeros(row["batch"], row["length"], dtype=torch.long).to(DEVICE)
        optimizer.zero_grad()
        loss = model(input_ids=words, attention_mask=torch.ones_like(words), labels=words,
                     use_cache=False).loss
        loss.backward()
        if row.get("clip"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()


def script(row):
    sys.path.insert(0, str(HERE.parent / "torch"))
    module = importlib.import_module(row["script"])
    module.train(module.parse([*row["words"], "--steps", str(STEPS)]))


def main():
    for row in json.loads(sys.argv[1]):
        error = None
        try:
            {"timm": timm, "language": language, "script": script}[row["program"]](row)
        except Exception as caught:  # pylint: disable=broad-except
            error = f"{type(caught).__name__}: {caught}"[:300]
        ctypes.CDLL("libcuda.so.1").cuProfilerStop()  # a mark in the simulator's log
        print("row", json.dumps(dict(last_step(), **({"error": error} if error else {}))),
              flush=True)
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
