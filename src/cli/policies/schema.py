#!/usr/bin/env python3
"""usage: schema.py KEYS OUTPUT

Writes the JSON Schema of policies, from the keys of policy/keys.def, as a C array. The schema
describes the policies that policy/check.c accepts."""
import json
import pathlib
import re
import sys

# Definitions that several keys use. A size has the form that common/size.c reads.
VALUES = {
    "bytes": {"type": "integer", "minimum": 0, "maximum": 2**53},
    "size": {"type": "string", "pattern": r"^[ \t]*[0-9]+([ \t]*[Bb]?|"
                                          r"(\.[0-9]+)?[ \t]*[KkMmGgTt]([Ii]?[Bb])?)[ \t]*$"},
    "percent": {"type": "string", "pattern": r"^[ \t]*[0-9]+(\.[0-9]+)?[ \t]*%[ \t]*$"},
    "pattern": {"type": "string", "minLength": 1, "maxLength": 256},
    "range": {"type": "string", "pattern": "^[0-9]{1,18}(-([0-9]{1,18})?)?$"},
}
# Required combinations of keys, and keys that exclude each other, by object.
CONDITIONS = {
    "python": {"anyOf": [{"required": [key]} for key in ("file", "function", "lines")]},
    "native": {"anyOf": [{"required": [key]} for key in ("symbol", "library")]},
    "size": {"minProperties": 1},
    "action": {"not": {"required": ["placement", "host_share"],
                       "properties": {"placement": {"enum": ["device", "host"]}}},
               "allOf": [
                   {"not": {"required": ["every", "share"]}},
                   {"if": {"anyOf": [{"required": [key]} for key in ("every", "share")]},
                    "then": {"required": ["recompute"],
                             "properties": {"recompute": {"const": True}}}},
                   {"if": {"required": ["recompute"]},
                    "then": {"propertyNames": {"enum": ["recompute", "every", "share"]}}}]},
    "rule": {"if": {"required": ["action"],
                    "properties": {"action": {"required": ["recompute"]}}},
             "then": {"properties": {"match": {"propertyNames": {
                 "enum": ["module", "module_class", "process", "rank"]}}}}},
}


def rows(text, macro):
    """The arguments of every row MACRO(...), with strings joined and unquoted."""
    for body in re.findall(rf"^{macro}\((.*?)\)$", text, re.S | re.MULTILINE):
        yield ["".join(re.findall(r'"(.*?)"', cell)) if '"' in cell else cell.strip()
               for cell in re.findall(r'\s*((?:"[^"]*"\s*)+|[^,"]+)(?:,|$)', body)]


def number(text):
    return 2**32 - 1 if text == "UINT32_MAX" else int(text)


def reference(name):
    return {"$ref": f"#/definitions/{name}"}


def any_of(*kinds):
    return {"anyOf": [reference(f"value-{kind}") if isinstance(kind, str) else kind
                      for kind in kinds]}


def many(kind, least=1, most=64):
    return {"type": "array", "minItems": least, "maxItems": most, "items": kind}


def schema_of(kind, of, low, high, words):
    """The schema of the value of a key."""
    name = of.removeprefix("SPW_POLICY_OBJECT_")
    whole = {"type": "integer", "minimum": low, "maximum": high}
    text = {"type": "string", "maxLength": high}
    return {
        "TEXT": any_of(text, many(text)),
        "NAME": {"type": "string", "pattern": f"^[A-Za-z0-9_.-]{{{low},{high}}}$"},
        "VERSION": {"const": low},
        "OBJECT": reference(name),
        "OBJECTS": any_of(reference(name), many(reference(name), low, high)),
        "LIST": many(reference(name), low, high),
        "GLOBS": any_of("pattern", many(reference("value-pattern"))),
        "RANGES": any_of("range", whole, many(any_of("range", whole))),
        "SIZE": any_of("bytes", "size"),
        "SHARE": any_of("bytes", "size", "percent"),
        "PERCENT": reference("value-percent"),
        "WORD": {"enum": [word for group, _, word, _ in words if f"SPW_WORDS_{group}" == of]},
        "SWITCH": {"type": "boolean"},
        "NUMBER": whole,
    }[kind]


def schema(text):
    words = list(rows(text, "SPW_POLICY_WORD"))
    objects = {name: {"type": "object", "additionalProperties": False, "properties": {},
                      "required": [], **CONDITIONS.get(name, {})}
               for name, _ in rows(text, "SPW_POLICY_OBJECT")}
    for owner, _, key, kind, of, need, low, high, meaning in rows(text, "SPW_POLICY_KEY"):
        value = schema_of(kind, of, number(low), number(high), words)
        objects[owner]["properties"][key] = {"description": meaning, "allOf": [value]}
        if need == "REQUIRED":
            objects[owner]["required"].append(key)
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "spillway policy",
            "allOf": [reference("file")],
            "definitions": {**{f"value-{name}": value for name, value in VALUES.items()},
                            **objects}}


if __name__ == "__main__":
    printed = json.dumps(schema(pathlib.Path(sys.argv[1]).read_text()), indent=2) + "\n"
    pathlib.Path(sys.argv[2]).write_text(
        f"static const char policy_schema[] = {{{','.join(map(str, [*printed.encode(), 0]))}}};\n")
