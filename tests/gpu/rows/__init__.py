"""The table of rows. The order decides what is known when time runs out: first what the design
depends on, then whether programs work, then how many."""
import dataclasses
import typing

CALLS = {1: "what the driver does", 2: "whether programs work under spillway",
         3: "more programs, frameworks and tools"}


@dataclasses.dataclass(frozen=True)
class Row:
    """name; call: in which of the calls it runs; seconds: its bound; what: one line;
    function(session) does it; again: a second run may explain a failure; beside: it says nothing
    of times or of a full device, so that others of this kind may run at the same time."""
    name: str
    call: int
    seconds: float
    what: str
    function: typing.Callable
    again: bool = True
    beside: bool = False


TABLE = {}


def row(call, seconds, again=True, beside=False):
    """Enters a function as a row. Its name is the row's, the first line of its text what it
    does."""
    def enter(function):
        name = function.__name__.replace("_", "-")
        what = function.__doc__.split("\n\n")[0].replace("\n", " ")
        what = " ".join(what.split()).rstrip(".")
        assert name not in TABLE
        TABLE[name] = Row(name, call, seconds, what, function, again, beside)
        return function
    return enter


# The order of the imports is that of the rows, inside each call.
from rows import driver, machine_facts, doors, programs, training, frameworks  # noqa: E402,F401

TABLE = dict(sorted(TABLE.items(), key=lambda entry: entry[1].call))
