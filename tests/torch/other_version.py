"""A folder that looks like the installed PyTorch, but says another version: for PYTHONPATH."""
import pathlib
import re
import subprocess

FIND = "import importlib.util; print(importlib.util.find_spec('torch').origin)"


def installed(interpreter):
    """The folder of the interpreter's PyTorch."""
    done = subprocess.run([interpreter, "-c", FIND], text=True, capture_output=True, check=True)
    return pathlib.Path(done.stdout.strip()).parent


def link_all(source, folder):
    folder.mkdir()
    for path in source.iterdir():
        (folder / path.name).symlink_to(path)


def make(interpreter, folder, version):
    """Fills the folder. PyTorch's libraries are links, so that the version beside them is found."""
    torch, folder = installed(interpreter), pathlib.Path(folder)
    link_all(torch, folder / "torch")
    (folder / "nvidia").symlink_to(torch.parent / "nvidia")
    for changed in ("lib", "version.py"):
        (folder / "torch" / changed).unlink()
    link_all(torch / "lib", folder / "torch/lib")
    text = (torch / "version.py").read_text()
    (folder / "torch/version.py").write_text(
        re.sub(r"^__version__ = .*", f"__version__ = '{version}'", text, flags=re.M))
