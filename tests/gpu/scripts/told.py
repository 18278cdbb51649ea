"""What a script of a row tells as data: lines "data: JSON", each written at once; and its clock."""
import argparse
import json
import time


def tell(what, **entry):
    """One entry of the list `what` in the row's data."""
    print("data: " + json.dumps({"what": what, **entry}), flush=True)


class Clock:
    """Seconds that a script, or a part of it, may take."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return max(0.0, self.end - time.monotonic())

    def part(self, seconds):
        """A clock that ends by then, and with this one."""
        return Clock(min(seconds, self.left()))


def arguments(text, *flags):
    """Those of a script that is bounded by its own clock; and flags of its own."""
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    parser.add_argument("--seconds", type=float, required=True, help="for everything together")
    parser.add_argument("--tiny", action="store_true", help="as little work as shows that it runs")
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()
