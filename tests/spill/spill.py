"""Common parts of the tests of spilling. With the argument --long they take all modes, sizes and
seeds together, otherwise each of them at least once."""
import os
import sys

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")


def argument(name, default):
    """The word that follows `name` on the command line, and both are taken from there."""
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    word = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    return word


sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../preload"))

SEEDS = (1, 2, 3) if LONG else (1,)
# For moves that are to succeed, however busy the machine is: a move is given up only when the
# device does not come to rest.
PATIENT = {"MOVE_WAIT": 1000}
SPILL_LINE = r"device 0 is full: for a block of .* are on the host now; up to .* may be used"
# Devices that cannot map chunks of the host.
PINNED = {"SIM_HOST_NUMA": "off"}
PINNED_LINE = "device 0 cannot map memory of the host as its own: new blocks go to page-locked"
