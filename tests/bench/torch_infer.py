"""Runs the forward pass of the GPT-2-shaped model of tests/torch again and again, and marks where
each ends.

    torch_infer.py [--offload] [ARGUMENTS OF gpt2_like.py]

--offload: the weights are on the host and go to the device layer by layer, by accelerate's
cpu_offload. Prints the peak of allocated memory after the first pass.
"""
import pathlib
import sys

import torch
import torch_spill

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "torch"))
import gpt2_like  # pylint: disable=wrong-import-position


def model_of(args, offload):
    model = gpt2_like.Model(args).eval()
    if not offload:
        return model.cuda()
    import accelerate  # pylint: disable=import-outside-toplevel
    return accelerate.cpu_offload(model, execution_device=torch.device("cuda"))


def main():
    offload = "--offload" in sys.argv
    args = gpt2_like.parse([word for word in sys.argv[1:] if word != "--offload"])
    torch.manual_seed(args.seed)
    model, mark = model_of(args, offload), torch_spill.Mark()
    tokens = torch.randint(args.vocabulary, (args.batch, args.context), device="cuda")
    with torch.no_grad():
        for step in range(args.steps):
            model(tokens)
            mark()
            torch.cuda.synchronize()
            if step == 0:
                torch.cuda.reset_peak_memory_stats()
    print(f"peak memory: {torch.cuda.max_memory_allocated() / (1 << 20):.1f} MiB allocated")


if __name__ == "__main__":
    main()
