"""`%load_ext spillway` in IPython and Jupyter."""
from __future__ import annotations

from typing import Any

from ._library import library
from ._report import report
from ._session import mark, stats, step

USAGE = """%spillway          what each device holds
%spillway report   the page of the recording
%spillway step     the beginning of a step
%%spillway NAME    runs the cell as the marked part NAME"""


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.2f} {unit}"


def _table() -> str:
    figures = stats()
    if not figures.get("devices"):
        return "no device memory is used yet" if library.loaded else "spillway is not loaded"
    head = ("device", "limit", "live", "live peak", "committed", "host", "out of memory")
    rows = [(str(device["ordinal"]), _size(device["limit_bytes"]), _size(device["live_bytes"]),
             _size(device["live_peak_bytes"]), _size(device["committed_bytes"]),
             _size(device["host_bytes"]), str(device["ooms"]))
            for device in figures["devices"]]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths))
                     for row in (head, *rows))


def load_ipython_extension(shell: Any) -> None:
    """Called by %load_ext spillway."""
    def spillway(line: str, cell: str | None = None) -> Any:
        word = line.strip()
        if cell is not None:
            if not word:
                print(USAGE)
                return None
            with mark(word):
                shell.run_cell(cell)
            return None
        if word == "report":
            return report()
        if word == "step":
            step()
        else:
            print(_table() if word in ("", "stats") else USAGE)
        return None

    spillway.__doc__ = USAGE
    shell.register_magic_function(spillway, magic_kind="line_cell", magic_name="spillway")
    if not library.loaded:
        library.call("spillway_version")


def unload_ipython_extension(shell: Any) -> None:
    """Called by %unload_ext spillway."""
    for magics in shell.magics_manager.magics.values():
        magics.pop("spillway", None)
