#!/usr/bin/env python3
"""Recorded accesses of programs: the lines that predict/replay.c reads, compressed in accesses/.

    accesses.py BUILD [NAME...]    records programs of torch_programs.py again; without names, all
"""
import lzma
import sys

import bench
import bench_arguments

FOLDER = bench.HERE / "accesses"


def names():
    return sorted(path.name.removesuffix(".xz") for path in FOLDER.glob("*.xz"))


def read(name):
    with lzma.open(FOLDER / f"{name}.xz", "rt") as trace:
        return trace.read()


def lines_of(events):
    """The lines of a trace. Blocks are numbered anew, and calls that use none are left out."""
    numbers, uses = {}, []
    for kind, *rest in events:
        if kind == "call":
            if uses:
                yield "u " + " ".join(map(str, uses))
            uses = []
        elif kind == "use":
            uses.append(numbers[rest[0]])
        elif kind == "step":
            yield "s"
        elif kind == "free":
            if rest[0] in numbers:  # else it was there before the program
                yield f"f {numbers[rest[0]]}"
        else:
            numbers[rest[0]] = len(numbers) + 1
            yield f"{kind[0]} {numbers[rest[0]]} {rest[1]} {rest[2]}"


def record(interpreter, name):
    reader = bench_arguments.run([interpreter, bench.HERE / "torch_operators.py",
                                  bench.HERE / "torch_programs.py", name], bench.LARGE)
    if reader is None:
        sys.exit(f"{name} failed")
    FOLDER.mkdir(exist_ok=True)
    with lzma.open(FOLDER / f"{name}.xz", "wt", preset=9 | lzma.PRESET_EXTREME) as trace:
        trace.writelines(line + "\n" for line in lines_of(reader.events))


def main():
    interpreter = bench.find_torch()
    if interpreter is None:
        sys.exit(1)
    listed = bench.simulate([interpreter, bench.HERE / "torch_programs.py"], bench.LARGE)
    for name in sys.argv[2:] or listed.stdout.split():
        record(interpreter, name)
        print(name, (FOLDER / f"{name}.xz").stat().st_size)


if __name__ == "__main__":
    main()
