"""Sizes and ties that the text of the files shows: folders, tables of operations, the process
object, constants, cycles, the map."""
import collections
import pathlib
import re

import modules
import tree
from house import source

PRELOAD = pathlib.PurePath("src/preload.c")
MAP = pathlib.PurePath("docs/dev/map/object.md")
GENERATED = {pathlib.PurePath("docs/dev/results"), MAP.parent}
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def figures():
    yield from sizes()
    yield from operations()
    yield from ties()
    yield from cycles()
    yield on_the_map()
    yield longest_page()


def sizes():
    for name in source.PARTS:
        yield f"lines_{name}", sum(map(source.lines, source.files(name))), ""
    folders = collections.Counter(path.parent for path in source.files())
    folder, count = max(folders.items(), key=lambda item: item[1], default=("", 0))
    yield "largest_folder", count, str(folder)
    yield "lines_preload", source.lines(PRELOAD), str(PRELOAD)


def structs():
    """{struct: (path, its pointers to functions, number of members)} of the object's structs that
    have pointers to functions."""
    found = {}
    for path in source.files("object"):
        for name, body in STRUCT.findall(tree.code(path)):
            members = [member for member in body.split(";") if member.strip()]
            pointers = re.findall(r"\(\*(?:const )?(\w+)\)\(", body)
            if pointers:
                found[name] = (path, pointers, len(members))
    return found


def initialised(text, name):
    """What stands between the braces of each initializer of a struct."""
    for match in re.finditer(rf"\bstruct {name}\b(?:[^;{{}}()]*=|\))\s*\{{", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield text[match.end():end]


def is_filled_above(name, declared, pointers):
    member = re.compile(rf"\.({'|'.join(pointers)})\s*=")
    return any(member.search(values) for path in source.files("object")
               if source.is_above(path, declared)
               for values in initialised(tree.code(path), name))


def operations():
    """A table has nothing but pointers to functions. It is called by name if it is an object of the
    layer that declares it; otherwise somebody hands it down."""
    counts, where = collections.Counter(), collections.defaultdict(list)
    for name, (path, pointers, members) in sorted(structs().items()):
        if not is_filled_above(name, path, pointers):
            continue
        kind = "callbacks" if len(pointers) < members else "operations_handed"
        if re.search(rf"^extern const struct {name} \w+", tree.code(path), re.MULTILINE):
            kind = "operations"
        counts[kind] += len(pointers)
        where[kind].append(f"{name} {len(pointers)}")
    for kind in ("operations", "operations_handed", "callbacks"):
        yield kind, counts[kind], ", ".join(where[kind])


def found_in(pattern, paths):
    """(all matches in the code of the files, the number of files with one)"""
    counts = [len(re.findall(pattern, tree.code(path))) for path in paths]
    return sum(counts), sum(map(bool, counts))


def ties():
    handles, files = found_in(r"\bvoid \*vm\b", source.files("object"))
    yield "handles", handles, f"{files} files"
    uses, files = found_in(r"\bspw_process\.", source.files())
    yield "process_uses", uses, ""
    yield "process_files", files, ""
    heads = [match for path in source.files() if tree.layer(path) == "pool"
             for match in source.functions(path)]
    whole = [match for match in heads if re.search(r"\bstruct spw_pool \*", match["parameters"])]
    yield "pool_share", percent(len(whole), len(heads)), f"{len(whole)} of {len(heads)} functions"
    tables = [path for path in tree.matching("src", ".def") if "tuning" in path.name]
    rows = sum(len(re.findall(r"^SPW_\w+\(", tree.text(path), re.MULTILINE)) for path in tables)
    yield "constants", rows, ", ".join(map(str, tables))


def percent(count, of):
    return round(100 * count / of, 1) if of else 0


def cycles():
    """By includes alone, so that the figure does not depend on a build."""
    modules.BUILD = None
    for name in source.PARTS:
        edges = modules.between_sources(modules.uses(source.files(name)), source.files(name))
        found = modules.cycles(edges)
        yield f"cycles_{name}", len(found), "; ".join(
            " ".join(str(node.relative_to("src")) for node in component) for component in found)


def on_the_map():
    """A module is on the map if the page has the path of its .c or .h file."""
    named = {source.module(pathlib.PurePath(path))
             for path in re.findall(r"\bsrc/[\w/]+\.[ch]\b", tree.text(MAP))}
    every = {source.module(path) for path in source.files("object")}
    return "off_the_map", len(every - named), f"{len(every & named)} of {len(every)} are named"


def longest_page():
    """Generated tables are apart: they are as long as their rows are many."""
    pages = [path for path in tree.matching("docs", ".md")
             if GENERATED.isdisjoint(path.parents)]
    page = max(pages, key=source.lines)
    return "longest_page", source.lines(page), str(page)
