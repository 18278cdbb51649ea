"""Modules without tensors."""
import types

_hooks = []


class Module:
    def __init__(self):
        self.__dict__.update(_parts={}, _buffers={})

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            for hook in _hooks:
                hook(self, name, value)
            self._parts[name] = value
        object.__setattr__(self, name, value)

    def children(self):
        return iter(self._parts.values())

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, part in self._parts.items():
            yield from part.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self):
        return (module for _, module in self.named_modules())

    def parameters(self):
        return iter([0])

    def buffers(self):
        return iter([])

    def __call__(self, *arguments):
        return self.forward(*arguments)


class Sequential(Module):
    def __init__(self, *parts):
        super().__init__()
        for index, part in enumerate(parts):
            setattr(self, str(index), part)

    def forward(self, value):
        for part in self.children():
            value = part(value)
        return value


class ModuleList(Sequential):
    pass


modules = types.SimpleNamespace(
    batchnorm=types.SimpleNamespace(_NormBase=type("_NormBase", (), {})),
    module=types.SimpleNamespace(register_module_module_registration_hook=_hooks.append))
