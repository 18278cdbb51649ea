"""The headers that the handler of an allocation asks for facts of its call."""
import re

import tree
from house import source

HANDLER = "spw_serve_cuMemAllocAsync"
# What returns one of these does work; its result says if that went well.
OUTCOMES = re.compile(r"\b(enum spw_err|CUresult|enum spw_serve_outcome)\b|"
                      r"^((static|inline|extern)\s+)*void\s+\w")
MACRO = re.compile(r"^#define (\w+)\(.*?\)((?:.*\\\n)*.*\n)", re.MULTILINE)
DECLARED = re.compile(r"^(?P<head>[A-Za-z_][^;={}#()]*?\b(?P<name>\w+)"
                      r"\((?P<parameters>[^;{}]*)\))[^;{}()]*;", re.MULTILINE)
OBJECT = re.compile(r"^extern [^;()]*?\b(\w+)(?:\[\w*\])?(?:\s*__attribute__[^;]*)?;", re.MULTILINE)
# Helpers that know nothing of the call.
HELPERS = ("common", "system")


def figures():
    path = next((path for path in source.files("object")
                 for match in source.functions(path) if match["name"] == HANDLER), None)
    if path is None:
        yield "headers_asked", None, f"no {HANDLER}"
        return
    names = set(re.findall(r"\w+", way(path)))
    asked = [header for header in source.headers(path)
             if tree.layer(header) not in (*HELPERS, tree.layer(path)) and names & answers(header)]
    yield "headers_asked", len(asked), ", ".join(
        str(header.relative_to("src")) for header in asked)


def way(path):
    """The text of the functions and macros of a file that the handler runs through; those that are
    marked noinline are off the way."""
    bodies = {name: body for name, body in MACRO.findall(tree.code(path))}
    bodies.update({match["name"]: match["body"] for match in source.functions(path)
                   if "noinline" not in match["head"]})
    found, left = {}, [HANDLER]
    while left:
        name = left.pop()
        if name in bodies and name not in found:
            found[name] = bodies[name]
            left += re.findall(r"\w+", bodies[name])
    return "\n".join(found.values())


def answers(header):
    """The objects that a header declares, and its functions that return a fact, or store one
    through a pointer to bool."""
    code = tree.code(header)
    heads = [*DECLARED.finditer(code), *source.functions(header)]
    functions = {match["name"] for match in heads
                 if not OUTCOMES.search(match["head"].split("(")[0].strip())
                 or "bool *" in match["parameters"]}
    return functions | set(OBJECT.findall(code))
