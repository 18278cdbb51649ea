"""Finds the command `spillway`."""
from __future__ import annotations

import os
import pathlib
import shutil

from ._library import library


def _candidates() -> list[pathlib.Path]:
    # A wheel has the command in the package. A build folder and a bundle have it beside the object.
    # An installation has it in the folder of programs.
    found = [pathlib.Path(__file__).resolve().parent / "native" / "spillway"]
    loaded = library.path()
    if loaded:
        folder = pathlib.Path(loaded).resolve().parent
        found += [folder / "spillway", folder.parent / "bin" / "spillway",
                  folder.parent.parent / "bin" / "spillway"]
    return found


def find_command() -> str | None:
    """Returns the path of the command. Looks in the package, then beside the loaded object, then on
    PATH. Ignores the script of this package. Returns None if there is no command."""
    for path in _candidates():
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    path_entry = shutil.which("spillway")
    if path_entry is None or _is_script(path_entry):
        return None
    return path_entry


def _is_script(path: str) -> bool:
    """Returns True for the script that a wheel installs. It would only call this package again."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def environment() -> dict[str, str]:
    """Returns the environment for the command. It leaves out libspillway.so, because the command
    itself is not observed."""
    kept = dict(os.environ)
    preload = [word for word in kept.pop("LD_PRELOAD", "").replace(":", " ").split()
               if not word.endswith("libspillway.so")]
    if preload:
        kept["LD_PRELOAD"] = ":".join(preload)
    return kept
