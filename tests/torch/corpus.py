#!/usr/bin/env python3
"""The training scripts that are run in all modes. As a command: prints their names."""


class Row:
    """A script with its arguments; how many processes torchrun starts (1: none); whether threads
    let go of its tensors late: see test_script.py; whether Triton compiles its kernels; and whether
    every mode is run in the quick tests, not only those that differ most."""

    def __init__(self, *command, processes=1, late=False, triton=False, every_mode=False):
        self.every_mode = every_mode
        self.command = list(command)
        self.processes = processes
        self.late = late
        self.triton = triton


SCRIPTS = {
    "gpt2_like": Row("gpt2_like.py", "--layers", "2", "--width", "256", "--heads", "4",
                     "--vocabulary", "5000", "--context", "256", "--batch", "4", "--steps", "4",
                     every_mode=True),
    "accumulation": Row("accumulation.py"),
    "checkpointing": Row("checkpointing.py"),
    "compile_eager": Row("compile_eager.py"),
    "compile_inductor": Row("compile_inductor.py", triton=True),
    "convolution": Row("convolution.py", every_mode=True),
    "convolution_benchmark": Row("convolution.py", "--benchmark"),
    "data_loader": Row("data_loader.py"),
    "data_parallel_nccl": Row("data_parallel_nccl.py", processes=2, late=True),
    "data_parallel_sharded": Row("data_parallel_nccl.py", "--sharded", processes=2, late=True),
    "efficient_transformer": Row("efficient_transformer.py"),
    "empty_cache": Row("empty_cache.py"),
    "graph_capture": Row("graph_capture.py", every_mode=True),
    "growing_batches": Row("growing_batches.py", every_mode=True),
    "gru_packed": Row("lstm.py", "--cell", "GRU", "--packed"),
    "hf_bert": Row("hf_models.py", "bert"),
    "hf_gpt2": Row("hf_models.py", "gpt2", "--checkpointing"),
    "hf_llama": Row("hf_models.py", "llama"),
    "hf_resnet": Row("hf_models.py", "resnet"),
    "hf_resnet_benchmark": Row("hf_models.py", "resnet", "--benchmark"),
    "hf_trainer": Row("hf_trainer.py"),
    "lazy_parameters": Row("lazy_parameters.py"),
    "lstm": Row("lstm.py"),
    "mixed_precision": Row("mixed_precision.py"),
    "monitoring": Row("monitoring.py"),
    "offload_module": Row("offload_module.py"),
    "other_libraries": Row("other_libraries.py"),
    "save_on_cpu": Row("save_on_cpu.py"),
    "side_streams": Row("side_streams.py", every_mode=True),
    "two_processes": Row("two_processes.py", processes=2),
    "variable_length": Row("variable_length.py"),
}

if __name__ == "__main__":
    print("\n".join(SCRIPTS))
