"""One of two ranks of PyTorch's recipe for the optimizer that shards its state: twenty linear
layers under data parallelism, one step of Adam, plain or sharded, tensor by tensor as when the
recipe was written. The process group communicates with nobody. A row ends at one of the stages
whose peaks were published."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.testing._internal.distributed.fake_pg import FakeStore

WIDTH, STAGES = 2000, ("model", "parallel", "backward", "step")


def build(_):
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(20)))


def keep(_, bucket):
    """Leaves the gradients of a bucket as they are."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def train(row, model, device):
    last = STAGES.index(row["until"])
    if last == 0:
        return
    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    model = nn.parallel.DistributedDataParallel(model, device_ids=[0])
    model.register_comm_hook(None, keep)
    if last == 1:
        return
    if row["method"] == "sharded":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam,
                                            lr=0.01, foreach=False)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, foreach=False)
    outputs = model(torch.zeros(20, WIDTH).to(device))
    labels = torch.zeros(20, WIDTH).to(device)
    nn.functional.mse_loss(outputs, labels).backward()
    if last == 3:
        optimizer.step()
