#!/usr/bin/env python3
"""usage: contents.py pack BUILD FOLDER
       contents.py check FOLDER GLIBC

What runs on other machines, as scripts/bundle and make_wheel.py pack it: the command, the object,
the simulated GPU, the policies, the documents, and the libraries that are not everywhere, with
their licences. `pack` fills a new folder from a build folder; `check` fails if a file of a folder
needs a newer glibc, or names the folder of this tree.
"""
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
# These are not everywhere; the object opens both, the command is linked with the second.
LIBRARIES = ("libunwind.so.8", "libcjson.so.1")
GLIBC = re.compile(r"(ld-linux-[a-z0-9-]+|libc|libm|libdl|librt|libpthread)\.so\.")


class Broken(Exception):
    """Why this cannot be packed."""


def output(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=True).stdout


def find_library(name, root, tools):
    """The file of a library below `root`."""
    multiarch = output(f"{tools}gcc", "-print-multiarch").strip()
    for folder in ("lib", "usr/lib"):
        file = pathlib.Path(root, folder, multiarch, name)
        if file.exists():
            return file
    raise Broken(f"{name} is not installed")


def needs(file):
    """The names of the libraries that a file needs."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "--dynamic", "--wide", file))


def licence(name, root):
    """The file with the licence of a library. Debian names its package after the library."""
    return pathlib.Path(root, "usr/share/doc", name.replace(".so.", ""), "copyright")


def copy_libraries(folder, root, tools):
    """Copies LIBRARIES and all that they need into a folder, where they find each other."""
    folder.mkdir()
    names = list(LIBRARIES)
    for name in names:
        file = find_library(name, root, tools)
        shutil.copyfile(file, folder / name)
        shutil.copyfile(licence(name, root), folder / f"{name}.copyright")
        output("patchelf", "--set-rpath", "$ORIGIN", folder / name)
        names += [need for need in needs(file) if not GLIBC.match(need) and need not in names]


def pack(build, folder, root="/", tools=""):
    """Fills a new folder from a build folder. The libraries are those below `root`; None: those of
    the machine that builds are used there. `tools` is the prefix of the compiler's name and of
    binutils'."""
    folder.mkdir(parents=True)
    for name in ("spillway", "libspillway.so"):
        shutil.copy(build / name, folder / name)
    (folder / "sim").mkdir()
    for file in sorted((build / "sim").glob("lib*.so.*")):
        shutil.copy(file, folder / "sim" / file.name)
    output(f"{tools}strip", "--strip-unneeded", folder / "spillway", folder / "libspillway.so",
           *(folder / "sim").iterdir())
    shutil.copytree(build / "sim/single_rank", folder / "sim/single_rank",
                    ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "policies").mkdir()
    for file in (*sorted((SOURCE / "policies").glob("*.json")), SOURCE / "policies/README.md"):
        shutil.copy(file, folder / "policies" / file.name)
    shutil.copytree(SOURCE / "docs", folder / "docs",
                    ignore=shutil.ignore_patterns("spillway.1", "manual.roff", "completions"))
    (folder / "python").mkdir()
    shutil.copy(SOURCE / "python/spillway/_recompute.py", folder / "python/recompute.py")
    if root is not None:
        copy_libraries(folder / "lib", root, tools)
        output("patchelf", "--set-rpath", "$ORIGIN/lib", folder / "spillway")


def newer_symbols(file, glibc, tools):
    """The symbols, with their versions, that a file needs of a newer glibc; none if it is no
    object."""
    done = subprocess.run([f"{tools}objdump", "-T", file], capture_output=True, text=True)
    newest = tuple(map(int, glibc.split(".")))
    return [f"{name} of glibc {text}"
            for text, name in re.findall(r"\*UND\*.*GLIBC_([0-9.]+)\)?\s+(\S+)$", done.stdout,
                                         re.MULTILINE)
            if tuple(map(int, text.split("."))) > newest]


def check(folder, glibc, tools=""):
    """Raises Broken if a file of the folder needs a newer glibc, or names the folder of this
    tree."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        newer = newer_symbols(file, glibc, tools)
        if newer:
            raise Broken(f"{file} needs {', '.join(newer)}")
        if str(SOURCE).encode() in file.read_bytes():
            raise Broken(f"{file} names the folder {SOURCE}")


def main():
    command, arguments = sys.argv[1:2], sys.argv[2:]
    try:
        if command == ["pack"] and len(arguments) == 2:
            pack(*map(pathlib.Path, arguments))
        elif command == ["check"] and len(arguments) == 2:
            check(pathlib.Path(arguments[0]), arguments[1])
        else:
            print("\n".join(__doc__.splitlines()[:2]), file=sys.stderr)
            return 2
    except Broken as reason:
        print(f"contents.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
