"""Shared by the tests of spilling. With the argument --long they run all combinations of modes,
sizes and seeds, otherwise each of them at least once."""
import os
import sys

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")


sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../preload"))

SEEDS = (1, 2, 3) if LONG else (1,)
# For moves that are to succeed, however busy the machine is: a move is given up only when the
# device does not come to rest.
PATIENT = {"MOVE_WAIT": 1000}
SPILL_LINE = r"device 0 is full: for a block of .* are on the host now; up to .* may be used"
# Devices that cannot map chunks of the host.
PINNED = {"SIM_HOST_NUMA": "off"}
# Drivers before CUDA 12.5, which cannot record an event of a whole context.
NO_REST = {"SIM_FAIL": "cuCtxRecordEvent:1+:801"}
NO_REST_LINE = r"device 0 cannot be seen at rest by this driver \(before CUDA 12.5\)"
PINNED_LINE = "device 0 cannot map host memory as its own: new blocks go to page-locked"
