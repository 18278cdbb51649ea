"""Where the command `spillway` is."""
from __future__ import annotations

import os
import pathlib
import shutil

from ._library import library


def _candidates() -> list[pathlib.Path]:
    # A wheel has it in the package; a build folder and a bundle have it beside the object, an
    # installation in the folder of programs.
    found = [pathlib.Path(__file__).resolve().parent / "native" / "spillway"]
    loaded = library.path()
    if loaded:
        folder = pathlib.Path(loaded).resolve().parent
        found += [folder / "spillway", folder.parent / "bin" / "spillway",
                  folder.parent.parent / "bin" / "spillway"]
    return found


def find_command() -> str | None:
    """The path of the command that belongs to the package or to the loaded object, else of one on
    PATH that is not the script of this package; None if there is none."""
    for path in _candidates():
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    path_entry = shutil.which("spillway")
    if path_entry is None or _is_script(path_entry):
        return None
    return path_entry


def _is_script(path: str) -> bool:
    """True for the script that a wheel installs, which would only lead back to here."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def environment() -> dict[str, str]:
    """The environment for the command: it is no program to be watched."""
    kept = dict(os.environ)
    preload = [word for word in kept.pop("LD_PRELOAD", "").replace(":", " ").split()
               if not word.endswith("libspillway.so")]
    if preload:
        kept["LD_PRELOAD"] = ":".join(preload)
    return kept
