"""The table of rows, in the order of what they decide: it is what is known when time runs out."""
import dataclasses
import typing


# What the outcome of a row depends on: (files and folders, but not these), by the names in
# `depends`. Any other word there is a path. The function of the row always counts. "probe" is what
# all sections of the probe share, without the list of them: a row names the file of its own.
CODE = {"probe": (("tests/gpu/probe/*.h", "tests/gpu/probe/*.ptx",
                   *(f"tests/gpu/probe/{name}.c"
                     for name in ("report", "memory", "kernels", "background"))),
                  ("tests/gpu/probe/sections.h",)),
        "library": (("src", "include"), ("src/sim", "src/cli")),
        "command": (("src/cli",), ()),
        "programs": (("tests/preload/**/*.[ch]", "tests/spill/*.[ch]"), ())}


@dataclasses.dataclass(frozen=True)
class Row:
    """name; order: its place by what it decides, the least
    first; seconds: its bound; cost: the seconds that it takes where no page tells; what: one line;
    decides: what its answer decides; depends: names of CODE and paths of the tree;
    function(session) does it; again: a second run may explain a failure; beside: it says nothing
    of times or of a full device, so that others of this kind may run at the same time."""
    name: str
    order: int
    seconds: float
    cost: float
    what: str
    decides: str
    depends: tuple
    function: typing.Callable
    again: bool = True
    beside: bool = False


TABLE = {}


def row(seconds, again=True, beside=False, *, order, cost, decides, depends=""):
    """Enters a function as a row. Its name is the row's, the first line of its text what it
    does."""
    def enter(function):
        name = function.__name__.replace("_", "-")
        what = function.__doc__.split("\n\n")[0].replace("\n", " ")
        what = " ".join(what.split()).rstrip(".")
        assert name not in TABLE
        TABLE[name] = Row(name, order, seconds, cost, what, decides,
                          tuple(depends.split()), function, again, beside)
        return function
    return enter


from rows import driver, spilling, machine_facts, doors  # noqa: E402,F401
from rows import programs, training, steps, features, figures, frameworks  # noqa: E402,F401

TABLE = dict(sorted(TABLE.items(), key=lambda entry: entry[1].order))
