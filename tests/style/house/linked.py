"""Objects of libspillway.so that can be written."""
import re
import shutil
import subprocess

# Of the compiler and of sanitizers, not of the sources.
FOREIGN = re.compile(r"__|completed\.|.*(asan|tsan|ubsan|sanitizer|gcov|llvm)")


def figures(build):
    library = build / "libspillway.so"
    if not library.is_file() or shutil.which("nm") is None:
        yield "writable", None, f"no {library}" if shutil.which("nm") else "no nm"
        return
    found = objects(library)
    local = [name for name, _ in found if re.search(r"\.\d+$", name)]
    largest = max(found, key=lambda item: item[1], default=("", 0))
    yield ("writable", len(found), f"{len(local)} in functions; {sum(s for _, s in found)} bytes; "
                                   f"largest {largest[0]}")


def objects(library):
    """(name, bytes) of each object in .data or .bss. Objects of a thread are in other sections, and
    so is what is constant once the loader has finished."""
    listed = subprocess.run(["nm", "--format=sysv", library], capture_output=True, text=True,
                            check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")] for line in listed.splitlines()]
    return [(row[0], int(row[4], 16)) for row in rows
            if len(row) == 7 and row[3] == "OBJECT" and row[6] in (".data", ".bss") and row[4]
            and not FOREIGN.match(row[0])]
