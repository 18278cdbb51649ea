"""`python -m spillway`, and the script `spillway` of a wheel: they become the command."""
from __future__ import annotations

import os
import sys

from ._command import find_command


def main() -> int:
    command = find_command()
    if command is None:
        print("spillway: the command `spillway` is not found: install the wheel that scripts/wheel "
              "builds, or put the command on PATH", file=sys.stderr)
        return 127
    try:
        os.execv(command, [command, *sys.argv[1:]])
    except OSError as error:
        print(f"spillway: {command}: {error.strerror}", file=sys.stderr)
        return 126
    return 0


if __name__ == "__main__":
    sys.exit(main())
