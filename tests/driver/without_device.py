"""What a script of PyTorch does on a machine with a driver and no device, by the words of the
command line; the test runs it bare and under spillway and compares the output."""
import os
import sys

import torch
import torch.utils.data


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.tensor([index * index, int(torch.cuda.is_available())])


def ask():
    print("available", torch.cuda.is_available(), "devices", torch.cuda.device_count())
    print("built for", torch.version.cuda, "initialised", torch.cuda.is_initialized())


def use():
    """Every way to begin with CUDA ends with an exception, and the process lives on."""
    for way in (lambda: torch.ones(4, device="cuda"), torch.cuda.init, torch.cuda.mem_get_info,
                torch.cuda.current_device, torch.cuda.Stream, torch.cuda.CUDAGraph):
        try:
            print("no exception", way())
        except (RuntimeError, AssertionError) as error:
            print(type(error).__name__, str(error).splitlines()[0])
    print(torch.ones(4).sum().item())


def load(method):
    workers = 1 if method == "spawn" else 2  # each spawned worker imports PyTorch anew
    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=workers,
                                         multiprocessing_context=method)
    for batch in loader:
        print(batch.tolist())


def main():
    for word in sys.argv[1:]:
        if word in ("fork", "spawn"):
            load(word)
        elif word == "os._exit":
            sys.stdout.flush()
            os._exit(7)
        elif word == "raise":
            raise ValueError("the script's own error")
        else:
            {"ask": ask, "use": use}[word]()


if __name__ == "__main__":
    main()
