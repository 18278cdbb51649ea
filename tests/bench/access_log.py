"""What spillway recorded of a program's accesses, beside what the simulated driver says they were.

The debug log of spillway and the log of the simulated driver with simulated time are one file, so
that the order of their lines is that of the events. The formats are in
src/migrate/learn/access_log.h and spill_log.py. torch_operators.py adds what PyTorch's operators
were given.
"""
import bisect
import dataclasses
import re

import plans

SUBMIT = re.compile(r"cu(Launch|GraphLaunch|Memcpy|Memset)")
LAUNCH = re.compile(r"cu(Launch\w*Kernel|GraphLaunch)")
STATED = "spw_"  # begins the names of the kernels that state what they use


class Known(plans.Blocks):
    """The blocks that spillway knows now, by address. A block is its number."""

    def within(self, address, size):
        """The blocks that share a byte with the range."""
        found = set()
        at = max(0, bisect.bisect_right(self.starts, address) - 1)
        while at < len(self.starts) and self.starts[at] < address + size:
            block, length = self.blocks[self.starts[at]]
            if self.starts[at] + length > address:
                found.add(block)
            at += 1
        return found


@dataclasses.dataclass
class Launch:
    kernel: str
    known: bool        # spillway knew all its addresses
    named: frozenset   # the blocks that spillway found
    used: set = dataclasses.field(default_factory=set)  # those that the kernel says it uses

    @property
    def stated(self):
        return self.kernel.startswith(STATED)


@dataclasses.dataclass
class Operator:
    name: str
    launches: int = 0
    known: bool = True  # all of its launches were
    named: set = dataclasses.field(default_factory=set)
    own: set = dataclasses.field(default_factory=set)  # allocated meanwhile, or a kernel's own
    used: set = dataclasses.field(default_factory=set)  # its arguments and results


class Reader:
    """Reads a log line by line, from where the access log is opened on."""

    def __init__(self):
        self.blocks, self.launches, self.operators, self.events = Known(), [], [], []
        self.by_item = {}      # {item: Launch}
        self.early_uses = {}   # {item: words}, of a launch whose line comes later
        self.open = False
        self.addresses = set()  # of the call whose line comes next
        self.calls = {}         # {thread: (what, blocks)} of the call that it is about to make
        self.operator = None

    def read(self, path):
        with open(path, errors="replace") as log:
            for line in log:
                words = line.split()
                if words[:2] == ["spillway:", "access"]:
                    self.open = True
                    self.access(*words[2:])
                elif self.open and words[:1] == ["operator"]:
                    self.note_operator(*words[1:])
                elif self.open and len(words) > 4 and words[3] == "uses":
                    self.note_uses(words[4], words[5:])
                elif self.open and len(words) > 5 and SUBMIT.match(words[3]):
                    self.submit(words[1], words[3], words[5], words[6:])
        return self

    def access(self, what, *details):
        if what in ("live", "alloc"):
            address, size = details[0].split("+")
            block = self.blocks.add(int(address, 16), int(size))
            self.events.append((what, block, int(size), int(details[1])))
            if self.operator is not None:
                self.operator.own.add(block)
        elif what == "free":
            self.events.append(("free", self.blocks.remove(int(details[0], 16))))
        elif what == "use":
            block = self.blocks.blocks[int(details[0], 16)][0]
            self.addresses.add(block)
            self.events.append(("use", block))
        elif what == "step":
            self.events.append(("step",))
        else:
            self.calls[details[0]] = what, frozenset(self.addresses)
            self.addresses = set()
            self.events.append(("call",))

    def submit(self, thread, name, result, details):
        """A call of the program was made, the one of which the thread's lines before told."""
        call, named = self.calls.pop(thread, (None, frozenset()))
        if self.operator is not None:
            self.operator.named |= named
        if LAUNCH.match(name) is None or result != "0":
            return
        facts = dict(word.split("=", 1) for word in details if "=" in word)
        launch = Launch(facts.get("kernel", "graph"), call == "kernel", named)
        self.launches.append(launch)
        if "item" in facts:
            self.by_item[facts["item"]] = launch
            self.note_uses(facts["item"], self.early_uses.pop(facts["item"], []))
        if self.operator is not None:
            self.operator.launches += 1
            self.operator.known &= launch.known
            self.operator.own |= launch.used if launch.stated else set()

    def note_uses(self, item, words):
        if item not in self.by_item:
            self.early_uses.setdefault(item, []).extend(words)
            return
        for word in words:
            address, size = word[1:].split("+")
            self.by_item[item].used |= self.blocks.within(int(address, 16), int(size))

    def note_operator(self, where, name="", *ranges):
        if where == "first":  # what went before is not the program's
            self.launches, self.operators, self.events = [], [], []
        elif where == "begin":
            self.operator = Operator(name)
        elif self.operator is not None:
            for word in ranges:
                address, size = word.split("+")
                self.operator.used |= self.blocks.within(int(address, 16), int(size))
            self.operators.append(self.operator)
            self.operator = None
