"""Who uses whom: files, modules and folders, by their includes and by the symbols of their objects.

A module is a .c file with the header of the same name; its name is the path without a suffix. One
module uses another when it includes its header or when its object file refers to a symbol that the
other one's defines. Includes are always known; symbols only where there is a build.
"""
import collections
import functools
import json
import os
import pathlib
import re
import subprocess

import tree

BUILD = os.environ.get("BUILD_ROOT")


def module(path):
    """src/pool/block.c and src/pool/block.h -> src/pool/block"""
    return path.with_suffix("")


def included(path):
    """The project's headers that a file includes, as they stand in it: pool/block.h."""
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', tree.text(path), re.MULTILINE)


@functools.cache
def objects():
    """The object file of each source of src/ that was compiled, of the first target that has it."""
    found = {}
    database = pathlib.Path(BUILD or "", "compile_commands.json")
    if not BUILD or not database.is_file():
        return found
    for command in json.loads(database.read_text()):
        folder = pathlib.Path(command["directory"])
        source = pathlib.Path(os.path.normpath(folder / command["file"]))
        compiled = folder / command["output"]
        # A generated source belongs to the folder that its own lies beside.
        top = BUILD if source.is_relative_to(BUILD) else tree.ROOT
        if source.is_relative_to(top) and source.suffix == ".c" and compiled.is_file():
            found.setdefault(source.relative_to(top), compiled)
    return {path: compiled for path, compiled in found.items() if path.parts[0] == "src"}


@functools.cache
def symbols():
    """For each source that was compiled: the symbols that it defines, and those that it refers to.
    Weak definitions do not count: they stand for what others may define."""
    sources = {str(compiled): path for path, compiled in objects().items()}
    if not sources:
        return {}
    listed = subprocess.run(["nm", "--print-file-name", "--format=posix", *sources],
                            capture_output=True, text=True, check=True)
    found = {path: (set(), set()) for path in sources.values()}
    for line in listed.stdout.splitlines():
        compiled, name, kind = line.split()[:3]
        defined, used = found[sources[compiled.removesuffix(":")]]
        if kind == "U":
            used.add(name)
        elif kind in "TDBRC":
            defined.add(name)
    return found


def uses(paths):
    """{module: {other module: why}} among the modules of some files, which are linked together;
    `why` is one include or symbol."""
    edges = collections.defaultdict(dict)
    known = {module(path) for path in paths}
    for path in paths:
        for name in included(path):
            other = module(pathlib.Path("src", name))
            if other in known and other != module(path):
                edges[module(path)].setdefault(other, f"includes {name}")
    # Generated sources are no files of the tree; they belong where their folder belongs.
    folders = {path.parent for path in paths}
    compiled = {path: found for path, found in symbols().items() if path.parent in folders}
    owners = {name: path for path, (defined, _) in compiled.items() for name in defined}
    for path, (_, used) in compiled.items():
        for name in sorted(used):
            other = owners.get(name)
            if other is not None and other != path:
                edges[module(path)].setdefault(module(other), f"uses {name}")
    return edges


def between_sources(edges, paths):
    """The uses among modules that have a source file. A header alone only declares, such as the
    interface of a folder whose functions several modules define."""
    sources = {module(path) for path in paths if path.suffix == ".c"}
    return {node: {other: why for other, why in others.items() if other in sources}
            for node, others in edges.items() if node in sources}


def cycles(edges):
    """The sets of modules that all lead back to each other (strongly connected components, by
    Tarjan's algorithm), each sorted, without those of a single module."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in number:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], number[other])
        if lowest[node] == number[node]:
            component = sorted(stack[stack.index(node):])
            del stack[stack.index(node):]
            if len(component) > 1:
                found.append(component)

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return found


def describe(component, edges):
    """A cycle as lines for a person: who uses whom, and by what."""
    return [f"{node} {why} of {other}" for node in component
            for other, why in sorted(edges[node].items()) if other in component]


def against_order(root, allowed, edges):
    """The uses among the folders below `root` that `allowed` ({folder: the folders it may use, in
    one string}) does not list. A folder may use itself."""
    def folder(node):
        return node.parent.relative_to(root).as_posix()

    return [f"{node} {why} of {other}" for node in sorted(edges)
            for other, why in sorted(edges[node].items())
            if folder(other) not in (folder(node), *allowed[folder(node)].split())]
