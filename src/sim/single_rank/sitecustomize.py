"""Prepares Python for one rank of a job whose other ranks are absent (`spillway sim --world`).

Python imports this module when it starts, because its folder is in PYTHONPATH. When the program
imports torch.distributed, this module replaces the parts that would wait for other ranks:

- the store in which ranks find each other: in the new store, the other ranks have already done
  whatever this rank waits for;
- Gloo: PyTorch's own process group `fake` takes its place;
- functions that send Python objects, in calls where another rank would be the sender.

NCCL needs no replacement, because the simulated library knows that the other ranks are absent. It
cannot know the size of groups that split off; this module passes the size on.
"""
import ctypes
import functools
import importlib.machinery
import importlib.util
import inspect
import os
import sys

MODULE = "torch.distributed.distributed_c10d"
NCCL_ID_BYTES = 128  # sizeof(ncclUniqueId)


def run_next():
    """Runs the sitecustomize that Python would have found without this one."""
    here = os.path.realpath(os.path.dirname(__file__))
    others = [path for path in sys.path if os.path.realpath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def make_store(base):
    """A store (torch.distributed.Store) of one rank."""

    class Store(base):
        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value if isinstance(value, bytes) else str(value).encode()

        def get(self, key):
            """Only NCCL's unique id is a key that another rank would have set; any id will do."""
            return self.values.get(key, bytes(NCCL_ID_BYTES))

        def compare_set(self, key, expected, desired):
            present = self.values.get(key)
            if present is None or present == (
                    expected if isinstance(expected, bytes) else str(expected).encode()):
                self.set(key, desired)
            return self.values[key]

        def add(self, key, amount):
            value = int(self.values.get(key, b"0")) + amount
            self.set(key, str(value))
            return value

        def append(self, key, value):
            self.values[key] = self.values.get(key, b"") + bytes(value)

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def wait(self, keys, timeout=None):
            """The other ranks have set every key."""

        def check(self, keys):
            return all(key in self.values for key in keys)

        def delete_key(self, key):
            return self.values.pop(key, None) is not None

        def num_keys(self):
            return len(self.values)

        def set_timeout(self, timeout):
            """Nothing is waited for."""

        def clone(self):
            return self

        # PyTorch's C++ calls these methods by their C++ names.
        multiGet, multiSet, deleteKey, getNumKeys = multi_get, multi_set, delete_key, num_keys

    return Store()


def replace_rendezvous(c10d):
    kept = []  # PyTorch's C++ does not keep the Python part of a store alive

    def rendezvous(url, rank=-1, world_size=-1, **_):
        kept.append(make_store(c10d.Store))
        yield (kept[-1], rank if rank >= 0 else int(os.environ["RANK"]),
               world_size if world_size >= 0 else int(os.environ["WORLD_SIZE"]))

    c10d.rendezvous = rendezvous


def without_gloo(c10d, backend):
    """The same backend for each device, with `fake` in the place of Gloo."""
    chosen = dict(c10d.BackendConfig(c10d.Backend(backend)).get_device_backend_map())
    if "gloo" not in chosen.values():
        return backend
    importlib.import_module("torch.testing._internal.distributed.fake_pg")
    if set(chosen.values()) == {"gloo"}:
        return c10d.Backend("fake")
    known = {device: name for device, name in chosen.items() if device in ("cpu", "cuda")}
    return c10d.Backend(",".join(f"{device}:{'fake' if name == 'gloo' else name}"
                                 for device, name in known.items()))


def tell_split_size(ranks):
    try:
        ctypes.CDLL("libnccl.so.2").spillway_sim_nccl_split(ranks)
    except (OSError, AttributeError):
        pass  # a build without the simulated NCCL


def wrap_groups(c10d):
    make, split = c10d._new_process_group_helper, c10d.split_group
    parameters = inspect.signature(make)

    @functools.wraps(make)
    def new_process_group_helper(*arguments, **named):
        bound = parameters.bind(*arguments, **named)
        bound.arguments["backend"] = without_gloo(c10d, bound.arguments["backend"])
        tell_split_size(bound.arguments["group_size"])
        return make(*bound.args, **bound.kwargs)

    @functools.wraps(split)
    def split_group(parent_pg=None, split_ranks=None, timeout=None, **named):
        parent = parent_pg or c10d.group.WORLD
        own = [sorted(ranks) for ranks in split_ranks or [] if parent.rank() in ranks]
        if "fake" not in str(c10d.get_backend_config(parent)):
            tell_split_size(len(own[0]) if own else 0)
            return split(parent_pg, split_ranks, timeout, **named)
        # The process group `fake` cannot be split, so a new group is made. PyTorch still splits its
        # NCCL communicator, because the device is bound.
        return c10d.new_group([c10d.get_global_rank(parent, rank) for rank in own[0]],
                              timeout, **named) if own else None

    c10d._new_process_group_helper, c10d.split_group = new_process_group_helper, split_group


def wrap_objects(c10d):
    """Where an absent rank would send an object, this rank keeps the object that it has."""

    def unless_sender(function, own_place):
        parameters = inspect.signature(function)

        @functools.wraps(function)
        def wrapped(*arguments, **named):
            bound = parameters.bind(*arguments, **named)
            bound.apply_defaults()
            group, source = bound.arguments["group"], bound.arguments.get("src")
            if bound.arguments.get("group_src") is not None:
                source = c10d.get_global_rank(group or c10d.group.WORLD,
                                              bound.arguments["group_src"])
            if (0 if source is None else source) == c10d.get_rank():
                return function(*arguments, **named)
            return own_place(bound.arguments)

        return wrapped

    def keep(_):
        return None

    def scatter(arguments):
        given = arguments["scatter_object_input_list"]
        if given:
            arguments["scatter_object_output_list"][0] = given[0]

    c10d.broadcast_object_list = unless_sender(c10d.broadcast_object_list, keep)
    c10d.scatter_object_list = unless_sender(c10d.scatter_object_list, scatter)
    c10d.recv_object_list = lambda object_list, src=None, *_, **__: 0 if src is None else src
    c10d.monitored_barrier = lambda *_, **__: None


def adapt(c10d):
    replace_rendezvous(c10d)
    wrap_groups(c10d)
    wrap_objects(c10d)


class Finder:
    """Finds torch.distributed's module once, and adapts it after it has run."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(cls)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            adapt(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder)
run_next()
