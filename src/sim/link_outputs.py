#!/usr/bin/env python3
"""Create FOLDER with a relative symbolic link to each FILE (or folder), which has the FILE's name.
Remove FOLDER's other links, such as those of another version of CUDA.

    link_outputs.py FOLDER FILE...
"""
import os
import sys


def main(argv):
    folder = argv[1]
    os.makedirs(folder, exist_ok=True)
    names = [os.path.basename(path) for path in argv[2:]]
    for entry in list(os.scandir(folder)):
        if entry.is_symlink() and entry.name not in names:
            os.unlink(entry.path)
    for path in argv[2:]:
        link = os.path.join(folder, os.path.basename(path))
        target = os.path.relpath(path, folder)
        if os.path.lexists(link):
            if os.path.islink(link) and os.readlink(link) == target:
                continue
            os.unlink(link)
        os.symlink(target, link)


if __name__ == "__main__":
    main(sys.argv)
