"""The files of the project, and what is code in them and what is comment."""
import functools
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


@functools.cache
def files():
    """Every file that is tracked, or new and not ignored; relative paths."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"], capture_output=True, check=True).stdout
        names = [name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        ignored = ("build", "dist", ".git", ".cuda", ".venv", ".wheel", "__pycache__")
        names = []
        for folder, folders, inside in os.walk(ROOT):
            folders[:] = [f for f in folders if not f.startswith(ignored)]
            names += [os.path.relpath(os.path.join(folder, name), ROOT) for name in inside]
    return sorted({pathlib.PurePath(name) for name in names if (ROOT / name).is_file()})


def matching(top, *suffixes):
    return [path for path in files()
            if path.parts[0] in top.split() and path.suffix in suffixes]


@functools.cache
def text(path):
    return (ROOT / path).read_text(errors="replace")


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


@functools.cache
def code(path):
    """The text of a C file with comments and string contents blanked; line numbers stay."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', _blank, text(path), flags=re.S)


def line_of(content, offset):
    return content.count("\n", 0, offset) + 1


def layer(path):
    """The layer a file of src/ belongs to; the files directly in src/ are the top one."""
    return path.parts[1] if len(path.parts) > 2 else "preload"
