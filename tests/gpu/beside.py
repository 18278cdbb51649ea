"""Runs rows that say nothing of times at the same time, in checks of their own."""
import pathlib
import shutil
import subprocess
import sys

import page

CHECK = pathlib.Path(__file__).resolve().parent / "check.py"


def shares(rows, count):
    """The rows in so many lists that take about as long, by their bounds."""
    lists = [[] for _ in range(count)]
    for row in sorted(rows, key=lambda row: -row.seconds):
        min(lists, key=lambda list_: sum(one.seconds for one in list_)).append(row)
    return [list_ for list_ in lists if list_]


def run(rows, at_once, output, arguments, seconds):
    """Runs the rows, `at_once` of them at a time, with the arguments of this check, for so many
    seconds at most. Each share leaves page, rows and archive in a folder of `output`; returns
    these folders."""
    folders, children = [], []
    for number, share in enumerate(shares(rows, at_once), 1):
        folder = output / f"beside-{number}"
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier check
        folder.mkdir()
        only = [word for row in share for word in ("--only", row.name)]
        with open(folder / "output.txt", "w") as out:
            children.append(subprocess.Popen(
                [sys.executable, "-B", CHECK, *arguments, "--output", folder,
                 "--seconds", f"{seconds:.0f}", *only], stdout=out, stderr=subprocess.STDOUT))
        folders.append(folder)
    for child in children:
        child.wait()
    return folders


def gather(folders, archive):
    """The rows of these folders. Their evidence goes to the archive, as far as it has room."""
    for folder in folders:
        archive.add_archive(folder / "evidence.tar.gz")
    return page.join(folders)[1]
