"""The companion of libspillway.so. It applies the rules about modules of a policy (`recompute`) to
the modules of PyTorch in this process. docs/guide/recompute.md describes the rules. If there is no
such rule, it marks the passes of modules in the recording (`SPILLWAY_RECORD_MODULES=on`).

The object runs this file when PyTorch is imported, and only for one of these two tasks. A module
that a rule matches runs in `torch.utils.checkpoint`: its forward pass saves only its inputs, and
runs again in the backward pass. This file changes these things in the process:

- `torch.__spec__` has another class while PyTorch is imported
- PyTorch has a global hook that is called when a module gets a submodule
- `torch.nn.Module` has another `__call__`, until the next call of a module
- the classes of the matched modules have another `forward`, which calls the original one

No module has a new attribute, so copies and pickles are as without spillway. It needs only the
standard library of Python 3.8 or newer, and PyTorch 2.4 or newer.
"""
from __future__ import annotations

import atexit
import functools
import itertools
import json
import operator
import os
import random
import re
import sys
import threading
import types
import weakref
from typing import Any, Callable, Iterator

Say = Callable[[str], Any]


# ---- rules ----

TOKEN = re.compile(r"(?s)(?P<run>\*+)|(?P<any>\?)|"
                   r"\[(?P<out>[!^]?)(?P<set>(?:\\.|[^\\])(?:\\.|[^\]\\])*)\]|"
                   r"\\(?P<quoted>.)|(?P<char>.)")


def translate(pattern: str, separator: str) -> str:
    """The regular expression of a pattern of policies (src/policy/glob.h)."""
    within, text = f"[^{separator}]" if separator else ".", ""
    for token in TOKEN.finditer(pattern):
        if token["run"]:
            text += ".*" if len(token["run"]) > 1 else within + "*"
        elif token["any"]:
            text += within
        elif token["set"]:
            inner = re.sub(r"(?s)\\(.)|([^\w-])", lambda found: re.escape(found[1] or found[2]),
                           token["set"])
            text += f"[{'^' if token['out'] else ''}{inner}]"
        else:
            text += re.escape(token["quoted"] or token["char"])
    return text


class Rule:
    """A rule about modules.

    found  the number of modules that it matched; if it is 0, one line reports this at exit"""

    def __init__(self, values: dict[str, Any]) -> None:
        self.name: str = values["name"]
        self.recompute: bool = values["recompute"]
        self.every: int = values["every"]
        self.permille: int = values["permille"]
        self.names = [re.compile(rf"(?s)(?:.*\.)?(?:{translate(text, '.')})")
                      for text in values["module"]]
        self.classes = [re.compile(f"(?s){translate(text, '')}") for text in values["module_class"]]
        self.found = 0

    def matches(self, name: str, module: Any, repeated: bool) -> bool:
        """Returns True if the rule matches the module. Without a pattern, the rule matches the
        repeated blocks of a model."""
        if not self.names and not self.classes:
            return repeated
        classes = [cls.__name__ for cls in type(module).__mro__ if cls.__name__ != "object"]
        return ((not self.names or any(item.fullmatch(name) for item in self.names)) and
                (not self.classes or any(item.fullmatch(text) for item in self.classes
                                         for text in classes)))

    def choose(self, found: list[Any]) -> list[Any]:
        if self.every:
            return found[::self.every]
        return found[:-(-len(found) * self.permille // 1000)]


def names_of(found: list[tuple[str, Any]]) -> str:
    """Returns the names of modules as "model.layers.0 to model.layers.11"."""
    first, last = found[0][0] or "the model", found[-1][0]
    return first if len(found) == 1 else f"{first} to {last}"


def modules_word(count: int) -> str:
    return f"{count} module{'s' if count != 1 else ''}"


# ---- the state that a second pass needs ----

def tensors_in(value: Any) -> Iterator[Any]:
    """Returns the tensors in arguments, also those inside lists, tuples and dictionaries."""
    if isinstance(value, torch().Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def rebuilt(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Returns a copy of arguments in which `replace` has replaced tensors and caches. Other objects
    are shared."""
    if isinstance(value, torch().Tensor) or is_cache(value):
        return replace(value)
    if type(value) in (list, tuple):
        return type(value)(rebuilt(item, replace) for item in value)
    if type(value) is dict:
        return {key: rebuilt(item, replace) for key, item in value.items()}
    return value


@functools.lru_cache(maxsize=None)
def is_cache_class(kind: type) -> bool:
    return any(base.__module__ == "transformers.cache_utils" for base in kind.__mro__)


def is_cache(value: Any) -> bool:
    """Returns True for the objects in which models of transformers collect keys and values. Each
    layer adds its own, so a second pass needs the state before the first one."""
    return is_cache_class(type(value))


def copy_of_cache(value: Any) -> Any:
    """Returns a copy that has the same tensors."""
    if is_cache(value) and hasattr(value, "__dict__"):
        copy = object.__new__(type(value))
        copy.__dict__.update((key, copy_of_cache(item)) for key, item in value.__dict__.items())
        return copy
    if type(value) in (list, tuple):
        return type(value)(map(copy_of_cache, value))
    if type(value) is dict:
        return {key: copy_of_cache(item) for key, item in value.items()}
    return value


def version_of(tensor: Any) -> int:
    """Returns how often the tensor was changed in place; -1 if PyTorch does not count this."""
    return -1 if tensor.is_inference() else tensor._version


class OtherRandom:
    """The state of the generators that `torch.utils.checkpoint` does not restore: Python's, and
    with `with_numpy` also NumPy's, which takes longer."""

    def __init__(self, with_numpy: bool) -> None:
        self.python = random.getstate()
        self.numpy = numpy_random() if with_numpy else None
        self.state = self.numpy and self.numpy.get_state(legacy=False)

    def restore(self) -> None:
        random.setstate(self.python)
        if self.numpy:
            self.numpy.set_state(self.state)

    def numpy_has_changed(self) -> bool:
        if not self.numpy:
            return numpy_random() is not None  # NumPy was imported meanwhile
        before, after = self.state["state"], self.numpy.get_state(legacy=False)["state"]
        return before["pos"] != after["pos"] or before["key"].tobytes() != after["key"].tobytes()


def numpy_random() -> Any:
    """Returns NumPy's generator. Returns None if the program does not use NumPy, or has replaced
    the generator by another kind."""
    found = getattr(sys.modules.get("numpy"), "random", None)
    return found if found and found.get_state(legacy=False)["bit_generator"] == "MT19937" else None


class Before:
    """The state of a module and of its arguments before its first call. A module that changes this
    state cannot run again from the changed state. Only its first call can run again, because this
    state is restored for it."""

    def __init__(self, module: Any, given: Any) -> None:
        self.inputs = [(item, version_of(item), item.detach().clone())
                       for item in tensors_in(given)]
        self.buffers = [(item, version_of(item), item.detach().clone())
                        for item in state_of(module)]
        self.places: list[tuple[Any, Any]] = []
        for part in module.modules():
            for place in (part._buffers, part.__dict__, *part.__dict__.values()):
                if type(place) in (dict, list):
                    self.places.append((place, type(place)(place)))

    def problem(self) -> str | None:
        """Returns the change that the call made, in words, or None."""
        if any(version_of(item) != version for item, version, _ in self.inputs):
            return "changes its input in place"
        if any(version_of(item) != version for item, version, _ in self.buffers):
            return "changes a buffer in place"
        for place, values in self.places:
            if type(place) is list:
                if len(place) != len(values):
                    return "changes a list"
                continue
            for key in {**values, **place}:
                now, value = place.get(key), values.get(key)
                if now is not value and not (type(now) in (int, float, bool, str) and now == value):
                    return f"sets {key}"
        return None

    def replace(self, value: Any) -> Any:
        """Returns the argument as it was before the call. The result is not a leaf of the graph,
        because a leaf cannot change in place."""
        for item, _, copy in self.inputs:
            if item is value:
                return copy.detach().requires_grad_(item.requires_grad).clone()
        return value

    def swap(self) -> Callable[[], None]:
        """Restores the state of the module before the call. Returns a function that undoes this."""
        after = [(item, item.detach().clone()) for item, _, _ in self.buffers]
        places = [(place, type(place)(place)) for place, _ in self.places]

        def put(buffers: list[Any], contents: list[Any]) -> None:
            for item, content in buffers:
                item.data.copy_(content)
            for place, content in contents:
                if type(place) is list:
                    place[:] = content
                else:
                    for key in [key for key in place if key not in content]:
                        del place[key]
                    place.update(content)

        put([(item, content) for item, _, content in self.buffers], self.places)
        return lambda: put(after, places)


class Call:
    """One call of a module in `torch.utils.checkpoint`, which calls `run` in the forward pass and
    again in each backward pass."""

    def __init__(self, entry: Entry, original: Callable[..., Any], module: Any, given: Any) -> None:
        self.entry, self.original, self.module = entry, original, module
        self.random = OtherRandom(entry.is_new or entry.uses_numpy)
        self.given = rebuilt(given, lambda item: copy_of_cache(item) if is_cache(item) else item)
        self.before = Before(module, given) if entry.is_new else None
        self.versions = [(item, version_of(item)) for item in tensors_in(given)]
        self.buffers = [(item, version_of(item)) for item in state_of(module)
                        ] if entry.has_buffers else []
        self.changed: list[Any] = []  # buffers
        self.has_run = False

    def run(self, args: Any, kwargs: Any) -> Any:
        running = self.entry.running()
        running.add(id(self.module))
        try:
            return self.again() if self.has_run else self.first(args, kwargs)
        finally:
            running.discard(id(self.module))

    def first(self, args: Any, kwargs: Any) -> Any:
        result = self.original(self.module, *args, **kwargs)
        self.has_run = True
        if self.before is None:
            self.changed = [item for item, version in self.buffers if version_of(item) != version]
            if self.changed:
                self.entry.leave("it changes a buffer in place")
        else:
            self.entry.is_new = False
            self.entry.uses_numpy = self.random.numpy_has_changed()
            problem = self.before.problem()
            if problem is None:
                self.before = None
            else:
                self.entry.leave(f"it {problem}")
        return result

    def again(self) -> Any:
        given, undo, now = self.given, None, OtherRandom(self.random.numpy is not None)
        if self.before is None and any(version_of(item) != version
                                       for item, version in self.versions):
            raise RuntimeError(
                f"spillway: rule {self.entry.rule.name} cannot compute {self.entry.name} again: "
                "an input of this module was changed in place. Exclude the module with a rule that "
                "has \"recompute\": false")
        given = rebuilt(given, lambda item: copy_of_cache(item) if is_cache(item) else item)
        statistics = [(item, item.detach().clone())
                      for item in (*statistics_of(self.module), *self.changed)]
        if self.before is not None:
            given, undo = rebuilt(given, self.before.replace), self.before.swap()
        self.random.restore()
        try:
            return self.original(self.module, *given[0], **given[1])
        finally:
            now.restore()
            if undo is not None:
                undo()
            for item, content in statistics:
                item.data.copy_(content)


def statistics_of(module: Any) -> Iterator[Any]:
    """Returns the running statistics of batch norms in training. A forward pass updates them, and
    does not use them. A second pass must not update them again."""
    for part in module.modules():
        if isinstance(part, torch().nn.modules.batchnorm._NormBase) and part.training:
            yield from (item for item in part._buffers.values() if item is not None)


def state_of(module: Any) -> list[Any]:
    """Returns the other buffers."""
    known = {id(item) for item in statistics_of(module)}
    return [item for item in module.buffers() if id(item) not in known]


# ---- modules ----

class Entry:
    """A module that a rule matched.

    is_new      it has not run yet
    active      it runs again in backward
    uses_numpy  its first call took random numbers from NumPy"""

    def __init__(self, companion: Companion, rule: Rule, name: str, module: Any) -> None:
        self.has_buffers = next(module.buffers(), None) is not None
        self.companion, self.rule, self.name = companion, rule, name
        self.kind = type(module).__name__
        self.is_new = self.active = True
        self.uses_numpy = False
        self.running = companion.running

    def leave(self, reason: str) -> None:
        self.active = False
        self.companion.chosen = {number: True for number, entry in self.companion.entries.items()
                                 if entry.active}
        self.companion.leave(self.rule, [(self.name, None)], reason, self.kind)


def why_not(module: Any) -> str | None:
    """Returns the reason why the forward of this module cannot be replaced, or None."""
    kinds = [cls.__name__ for cls in type(module).__mro__]
    own = module.__dict__.get("forward")
    if isinstance(module, torch().jit.ScriptModule):
        return "it is a script (torch.jit)"
    if getattr(module, "gradient_checkpointing", None) is True or any(
            type(part).__name__ == "CheckpointWrapper" for part in module.modules()):
        return "it is checkpointed already"
    if "OptimizedModule" in kinds or getattr(module, "_compiled_call_impl", None) is not None:
        return "it is compiled already (torch.compile)"
    if own is not None and "_old_forward" not in module.__dict__:
        return "it has a forward of its own, beside that of its class"
    if not isinstance(definer_of(module).__dict__["forward"], types.FunctionType):
        return "its forward is no plain function"
    return None


WRAPPERS = {"_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module"}


def plain_name(name: str) -> str:
    """Returns the name of a module in the user's model, without the names of wrappers."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def inner_of(module: Any) -> Any:
    """Returns the module itself, or the module inside FullyShardedDataParallel, which gathers the
    parameters of the inner module for each pass."""
    sharded = any(base.__name__ == "FullyShardedDataParallel" for base in type(module).__mro__)
    return module._modules["_fsdp_wrapped_module"] if sharded else module


def definer_of(module: Any) -> type:
    """Returns the class that defines the forward of a module."""
    return next(cls for cls in type(module).__mro__ if "forward" in cls.__dict__)


COPIED = "DataParallel makes copies of it in each step"


def copied_in_steps(top: Any) -> set[int]:
    return {id(part) for module in top.modules()
            if type(module).__name__ == "DataParallel" and len(module.device_ids) > 1
            for part in module.modules()}


def repeated_blocks(top: Any) -> set[int]:
    """Returns the repeated blocks of a model: modules of one class, with submodules and parameters,
    in one ModuleList or Sequential."""
    nn, found = torch().nn, set()
    for container in top.modules():
        if isinstance(container, (nn.ModuleList, nn.Sequential)):
            kinds: dict[type, list[Any]] = {}
            for child in map(inner_of, container.children()):
                if next(child.children(), None) is not None and any(
                        True for _ in child.parameters()):
                    kinds.setdefault(type(child), []).append(child)
            found |= {id(child) for kind in kinds.values() if len(kind) > 1 for child in kind}
    return found


class Route:
    """Calls the companion for the forward of a class. A copy in another process is None."""

    def __init__(self, companion: Companion) -> None:
        self.companion = companion

    def __call__(self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        return self.companion.call(original, module, args, kwargs)

    def __reduce__(self) -> Any:
        return operator.itemgetter(0), ((None,),)


def replacement(original: Any, route: Route | None) -> Any:
    """Returns the function that replaces `original`. It has the globals of `original` and no name
    of this file. So the class can be pickled by value, compiled and scripted as before."""
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if route is None:
            return original(self, *args, **kwargs)
        return route(original, self, args, kwargs)

    function = types.FunctionType(forward.__code__, original.__globals__, original.__name__,
                                  forward.__defaults__, forward.__closure__)
    return functools.update_wrapper(function, original)


class Companion:
    """The rules, and the modules of this process."""

    takes_nested = False  # no rule applies to a module inside a matched one

    def __init__(self, rules: list[Rule], say: Say) -> None:
        self.rules, self.say = rules, say
        self.entries: dict[int, Entry] = {}
        self.seen: dict[int, Any] = {}     # weak references to examined modules, by id
        self.built: dict[int, Any] = {}    # the same for modules that are not yet examined
        self.replaced: set[type] = set()
        self.told: set[str] = set()
        self.tops: dict[str, str] = {}     # class of a model, and its repeated blocks in words
        self.chosen: dict[int, bool] = {}  # the ids of active entries, for compiled programs
        self.armed = False                 # the next call of a module examines the built modules
        self.plain_call = torch().nn.Module.__call__
        self.first_call = self.make_first_call()
        self.hook: Any = None
        self.lock = threading.RLock()
        self.threads = threading.local()
        self.route = Route(self)
        self.is_exporting = getattr(torch().compiler, "is_exporting", lambda: False)

    def running(self) -> set[int]:
        """Returns the matched modules whose forward this thread is running."""
        found: set[int] = self.threads.__dict__.setdefault("running", set())
        return found

    def tell(self, text: str) -> None:
        if text not in self.told:
            self.told.add(text)
            self.say(f"recompute: {text}")

    def leave(self, rule: Rule, found: list[tuple[str, Any]], reason: str, kind: str = "") -> None:
        """Reports modules that are left alone. For each reason, only the first module of a class is
        named."""
        key = f"{rule.name} {reason} {kind}"
        if key not in self.told:
            self.told.add(key)
            self.tell(f"rule {rule.name} leaves {names_of(found)} alone: {reason}")

    # ---- finding modules ----

    def install(self) -> None:
        module = torch().nn.modules.module
        module.register_module_module_registration_hook(self.on_registration)
        atexit.register(self.at_exit, os.getpid())
        os.register_at_fork(after_in_child=self.after_fork)
        self.arm()

    def after_fork(self) -> None:
        self.lock = threading.RLock()  # another thread may have held it

    def arm(self) -> None:
        """Replaces the `__call__` of modules until the next call. PyTorch warns of hooks when a
        compiled module is called, so a hook is used only if `__call__` is already replaced, for
        example by torch.fx."""
        module = torch().nn.modules.module
        with self.lock:
            self.armed = True
            if torch().nn.Module.__call__ is self.plain_call:
                torch().nn.Module.__call__ = self.first_call
            elif torch().nn.Module.__call__ is not self.first_call and self.hook is None:
                self.hook = module.register_module_forward_pre_hook(
                    lambda called, arguments: self.on_call(called))

    def disarm(self) -> None:
        self.armed = False
        if torch().nn.Module.__call__ is self.first_call:
            torch().nn.Module.__call__ = self.plain_call
        if self.hook is not None:
            self.hook.remove()
            self.hook = None

    def make_first_call(self) -> Any:
        plain = self.plain_call

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if not torch().compiler.is_compiling():
                self.on_call(module)
            return plain(module, *args, **kwargs)

        return functools.update_wrapper(__call__, plain)

    def on_registration(self, module: Any, name: str, submodule: Any) -> None:
        self.built[id(module)] = weakref.ref(module)
        if not self.armed or torch().nn.Module.__call__ is self.plain_call:
            self.arm()

    def on_call(self, module: Any) -> None:
        """Called when a module is called. Examines all modules that were built before."""
        with self.lock:
            armed = self.armed
            self.disarm()
            if not armed:
                return
            try:
                refs = list(self.built.values())
                self.built.clear()
                built = [item for item in [ref() for ref in refs] if item is not None]
                inside = {id(child) for item in built for child in item.children()}
                for top in [item for item in built if id(item) not in inside]:
                    self.examine(top)
                if not self.is_seen(module):
                    self.examine(module)
            except Exception as error:  # the program must go on
                self.tell(f"modules cannot be examined: {type(error).__name__}: {error}")

    def is_seen(self, module: Any) -> bool:
        ref = self.seen.get(id(module))
        return ref is not None and ref() is module

    def note(self, module: Any) -> None:
        number = id(module)

        def forget(_: Any) -> None:
            for table in (self.seen, self.entries, self.chosen):
                table.pop(number, None)

        forget(None)
        self.seen[number] = weakref.ref(module, forget)

    def examine(self, top: Any) -> None:
        """Applies the rules to a model."""
        repeated = repeated_blocks(top)
        found: dict[str, list[tuple[str, Any]]] = {}
        covered: list[str] = []
        for name, module in top.named_modules():
            if inner_of(module) is not module:
                continue
            name = plain_name(name)
            known, matching = self.is_seen(module), None
            if self.takes_nested or not any(name.startswith(outer) for outer in covered):
                matching = next((rule for rule in self.rules
                                 if rule.matches(name, module, id(module) in repeated)), None)
            if matching is not None:
                covered.append(f"{name}." if name else "")
                matching.found += 1
                if not known:
                    found.setdefault(matching.name, []).append((name, module))
            if not known:
                self.note(module)
        kinds = {type(module).__name__ for module in top.modules() if id(module) in repeated}
        self.tops[type(top).__name__] = ", ".join(sorted(kinds))
        for rule in self.rules:
            if rule.recompute and rule.name in found:
                self.apply(rule, top, found[rule.name])

    def apply(self, rule: Rule, top: Any, found: list[tuple[str, Any]]) -> None:
        fit: list[tuple[str, Any]] = []
        alone: dict[str, list[tuple[str, Any]]] = {}
        copied = copied_in_steps(top)
        for name, module in found:
            reason = (COPIED if id(module) in copied else
                      why_not(module) or self.replace(module))
            if reason is None:
                fit.append((name, module))
            else:
                alone.setdefault(reason, []).append((name, module))
        for reason, left in alone.items():
            self.leave(rule, left, reason)
        chosen = rule.choose(fit)
        for name, module in chosen:
            self.entries[id(module)] = Entry(self, rule, name, module)
            self.chosen[id(module)] = True
        if chosen:
            self.tell(f"rule {rule.name}: {len(chosen)} of {modules_word(len(found))} of "
                      f"{type(top).__name__} run again in backward: {names_of(chosen)}")

    def replace(self, module: Any) -> str | None:
        """Replaces the forward of the class. Returns the reason if this is not possible."""
        definer = definer_of(module)
        if definer not in self.replaced:
            try:
                setattr(definer, "forward", replacement(definer.__dict__["forward"], self.route))
            except (AttributeError, TypeError):
                return "the forward of its class cannot be replaced"
            self.replaced.add(definer)
        return None

    # ---- calls ----

    def call(self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        if torch().compiler.is_compiling():  # the compiler follows this line, and no line below
            if id(module) not in self.chosen or self.is_exporting():
                return original(module, *args, **kwargs)
            return torch().utils.checkpoint.checkpoint(original, module, *args, use_reentrant=False,
                                                       **kwargs)
        entry = self.entries.get(id(module))
        if entry is None:
            if not self.is_seen(module):
                self.arm()  # a copy, for which no hook was called
            return original(module, *args, **kwargs)
        if not entry.active or id(module) in self.running() or not self.may(entry):
            return original(module, *args, **kwargs)
        try:
            call = Call(entry, original, module, (args, kwargs))
        except Exception as error:  # the program must go on
            entry.leave(f"its call cannot be noted: {type(error).__name__}: {error}")
            return original(module, *args, **kwargs)
        return torch().utils.checkpoint.checkpoint(call.run, args, kwargs, use_reentrant=False,
                                                   preserve_rng_state=True)

    def may(self, entry: Entry) -> bool:
        """Returns False if nothing is saved for the backward pass, or if the program saves it in
        another way."""
        native = torch()._C
        if (not torch().is_grad_enabled() or native._current_graph_task_id() != -1 or
                native._get_tracing_state() is not None or
                native._functorch.peek_interpreter_stack() is not None or
                (torch().cuda.is_initialized() and torch().cuda.is_current_stream_capturing())):
            return False
        if self.running():
            return False
        if (not native._autograd._saved_tensors_hooks_is_enabled() or
                native._autograd._top_saved_tensors_default_hooks(True) is not None):
            self.leave(entry.rule, [(entry.name, None)], "it is called where the program "
                       "checkpoints already, or saves tensors by hooks of its own", entry.kind)
            return False
        return True

    def at_exit(self, process: int) -> None:
        alive = any(ref() is not None for ref in self.built.values())
        if os.getpid() != process or not (self.tops or alive):
            return
        blocks = "; ".join(f"{top} has blocks of {kinds}" if kinds else f"{top} has none"
                           for top, kinds in self.tops.items())
        for rule in self.rules:
            if rule.recompute and rule.found == 0:
                self.tell(f"rule {rule.name} matches no module ("
                          f"{blocks or 'no model was called, except in compiled functions'})")


class Recorder(Companion):
    """Marks each forward pass of the repeated blocks of models in the recording: its time, the
    tensors that it takes and returns, and the moment when the backward pass reaches it. It replaces
    the same functions as the companion does, and computes nothing again."""

    takes_nested = True

    def __init__(self, say: Say, mark: Say) -> None:
        self.mark = mark
        self.numbers = itertools.count(1)
        super().__init__([Rule({"name": "record", "recompute": True, "every": 0, "permille": 1000,
                                "module": [], "module_class": []})], say)

    def tell(self, text: str) -> None:
        """Writes nothing: a recorded run has no rules, and so no lines about them."""

    def call(self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        entry = None if torch().compiler.is_compiling() else self.entries.get(id(module))
        if entry is None or not entry.active or not self.may(entry):
            return original(module, *args, **kwargs)
        self.mark(f"+module {entry.name}")
        try:
            result = original(module, *args, **kwargs)
        finally:
            self.mark(f"-module {entry.name}")
        try:
            self.note_tensors(result, (args, kwargs))
        except Exception as error:  # the program must go on
            entry.leave(f"its tensors cannot be noted: {type(error).__name__}: {error}")
        return result

    def note_tensors(self, result: Any, given: Any) -> None:
        number = next(self.numbers)
        self.mark(f"={number:x} {addresses_of(result)}-{addresses_of(given)}")
        for item in tensors_in(result):
            if item.grad_fn is not None and item.device.type == "cuda":
                item.register_hook(lambda _: self.mark(f"<{number:x}") and None)


def addresses_of(value: Any) -> str:
    """Returns the addresses of the device tensors in a value, each followed by a space."""
    return "".join(f"{address_of(item):x} " for item in tensors_in(value)
                   if item.device.type == "cuda")


def address_of(tensor: Any) -> int:
    """Returns the address of a tensor; 0 if it has no memory of its own, such as some tensors of
    subclasses."""
    try:
        return int(tensor.data_ptr())
    except Exception:
        return 0


def torch() -> Any:
    return sys.modules["torch"]


# ---- the beginning ----

def when_imported(module: Any, then: Callable[[], None]) -> None:
    """Calls a function when the import of a module is complete, or at once if it is."""
    spec = module.__spec__
    kind = type(spec)

    class Spec(kind):  # type: ignore[misc, valid-type]
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "_initializing" and not value:
                self.__class__ = kind
                then()

    if getattr(spec, "_initializing", False):
        spec.__class__ = Spec
    else:
        then()


def enter(rules: str, say: Say, mark: Say) -> None:
    """Called by the object, while PyTorch is imported. `rules` is a list in JSON, or "record"."""
    def begin() -> None:
        try:
            if hasattr(sys.modules.get("torch"), "nn") and rules == "record":
                Recorder(say, mark).install()
            elif hasattr(sys.modules.get("torch"), "nn"):
                Companion([Rule(values) for values in json.loads(rules)], say).install()
            else:  # the import failed: the program may try it again
                del sys.modules[__name__]
        except Exception as error:  # the program must go on
            say(f"recompute: no module is {'recorded' if rules == 'record' else 'computed again'}: "
                f"{type(error).__name__}: {error}")

    when_imported(torch(), begin)
