"""The table of rows. The order decides what is known when time runs out: first what the design
depends on, then whether programs work, then how many."""
import dataclasses
import typing

CALLS = {1: "what the driver does", 2: "whether programs work under spillway",
         3: "more programs, frameworks and tools"}


# What the outcome of a row depends on, by the names in `depends`; any other word there is a path.
# The function of the row always counts.
CODE = {"probe": ("tests/gpu/probe",),
        "library": ("src", "include"),
        "command": ("src/cli",),
        "programs": ("tests/preload", "tests/spill")}
# Parts of these that no row on a card runs, but for those with "command".
NOT_ON_A_CARD = ("src/sim", "src/cli")


@dataclasses.dataclass(frozen=True)
class Row:
    """name; call: in which of the calls it runs; order: its place by what it decides, the least
    first; seconds: its bound; cost: the seconds that it takes where no page tells; what: one line;
    decides: what its answer decides; depends: names of CODE and paths of the tree;
    function(session) does it; again: a second run may explain a failure; beside: it says nothing
    of times or of a full device, so that others of this kind may run at the same time."""
    name: str
    call: int
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


def row(call, seconds, again=True, beside=False, *, order, cost, decides, depends=""):
    """Enters a function as a row. Its name is the row's, the first line of its text what it
    does."""
    def enter(function):
        name = function.__name__.replace("_", "-")
        what = function.__doc__.split("\n\n")[0].replace("\n", " ")
        what = " ".join(what.split()).rstrip(".")
        assert name not in TABLE
        TABLE[name] = Row(name, call, order, seconds, cost, what, decides,
                          tuple(depends.split()), function, again, beside)
        return function
    return enter


# The order of the imports is that of the rows, inside each call.
from rows import (driver, spilling, machine_facts, doors,  # noqa: E402,F401
                  programs, training, frameworks)  # noqa: E402,F401

TABLE = dict(sorted(TABLE.items(), key=lambda entry: entry[1].call))
