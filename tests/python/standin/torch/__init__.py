"""A stand-in for PyTorch, without tensors: what the companion of spillway needs.

Its extension module is looked up as that of PyTorch is, in the middle of the import."""
import ctypes
import os
import types


def look_up(name="PyInit__C"):
    """Calls dlsym while the interpreter's lock is held, as an import does."""
    getattr(ctypes.PyDLL(None), name, None)


if os.environ.get("STANDIN_FAILS"):
    look_up()
    raise ImportError("broken")
look_up()

from . import nn  # noqa: E402


class Tensor:
    pass


def is_grad_enabled():
    return True


def checkpoint(function, *arguments, use_reentrant, preserve_rng_state=True, **named):
    assert use_reentrant is False
    checkpoint.calls += 1
    return function(*arguments, **named)


checkpoint.calls = 0
utils = types.SimpleNamespace(checkpoint=types.SimpleNamespace(checkpoint=checkpoint))
jit = types.SimpleNamespace(ScriptModule=type("ScriptModule", (), {}))
cuda = types.SimpleNamespace(is_initialized=lambda: False)
compiler = types.SimpleNamespace(is_compiling=lambda: False)
_C = types.SimpleNamespace(
    _current_graph_task_id=lambda: -1, _get_tracing_state=lambda: None,
    _functorch=types.SimpleNamespace(peek_interpreter_stack=lambda: None),
    _autograd=types.SimpleNamespace(_saved_tensors_hooks_is_enabled=lambda: True,
                                    _top_saved_tensors_default_hooks=lambda tracing: None))
