"""Which tests judge the mutants of which folder.

A test is written `suite/name`, as in the files meson.build of tests/; `*` stands for any text.
Within a folder the tool runs quick tests first, and those first that killed other mutants of the
same file.
"""
import fnmatch
import pathlib

# What is mutated: the C files below src/, but not these.
LEFT_OUT = {
    "src/sim": "imitates NVIDIA's libraries, for tests and estimates",
    "src/cli": "prints for a user",
    "src/pool/check.c": "is the check that tests call",
}

# Functions that are a part of that check.
LEFT_OUT_FUNCTIONS = ("pool/space/slabs.c:check_slab", "pool/space/slabs.c:spw_pool_slabs_check")

POOL = ("unit/pool_*", "unit/migration", "unit/hidden_writes", "stress/stream_order",
        "stress/pool_traces")
PROGRAMS = ("preload/programs", "preload/policies", "preload/oom", "fault/faults", "spill/spill",
            "spill/spill host", "spill/spill faults", "spill/spill copies")
# Of the folders that follow the program's calls.
TRACK = ("preload/doors", "preload/sharing", "preload/registers", "preload/hostile", *PROGRAMS,
         "spill/spill adversaries", "spill/spill guarded", "stress/stress")

SUITES = {
    "backend": ("unit/backend*", "unit/copier", "unit/fence", *PROGRAMS, "stress/stress"),
    "call": ("unit/lease", *TRACK),
    "callsite": ("unit/site_*", "preload/sites", "preload/policies", "preload/hostile",
                 "preload/top", "preload/report", "preload/oom"),
    "common": ("unit/*", "preload/doors", "preload/command", "preload/hostile", "preload/programs"),
    "system": ("unit/*", "preload/doors", "preload/command", "preload/hostile", "preload/programs"),
    "companion": ("cli/python recompute",),
    "device": ("unit/lease", "spill/spill share", *TRACK),
    "driver": ("unit/backend", "unit/host_memory", "unit/host_rights", "unit/host_verdict",
               "preload/host_limits", "preload/doors", "preload/symbols", "preload/lookups",
               "preload/sharing", "preload/hostile", *PROGRAMS),
    "gpu": ("unit/verdict", "unit/need", "preload/fit", "preload/brief", "preload/cards"),
    "graph": TRACK,
    "intercept": ("preload/doors", "preload/symbols", "preload/lookups", "preload/registers",
                  "preload/sharing", "preload/hostile", "preload/sites", *PROGRAMS),
    "ipc": ("unit/ipc", "unit/ipc_table", "preload/ipc", "preload/sharing"),
    "migrate": ("unit/access_log", "unit/barrier", "unit/barrier_steps", "unit/exporter",
                "unit/hidden_writes", "unit/migrat*", "unit/planner", "unit/predictor",
                "unit/prefetch", "unit/swap", "unit/throttle", "unit/pool_*",
                "spill/spill", "spill/spill host", "spill/spill guarded", "spill/spill faults",
                "spill/spill copies", "spill/spill adversaries", "spill/spill pause",
                "preload/programs", "preload/ipc"),
    "policy": ("unit/policy*", "cli/policy command", "preload/policies", "fuzz/*policy*"),
    "pool": ("unit/accounts", "unit/address_map", "unit/bins", "unit/packing", "unit/repetition",
             "unit/stream_queue", "unit/exporter", "unit/migrat*", "unit/prefetch", "unit/swap",
             *POOL, *PROGRAMS, "preload/ipc"),
    "preload": ("preload/*", "spill/spill", "fault/faults"),
    "process": TRACK,
    "program": ("unit/spans", *TRACK),
    "record": ("unit/stats*", "preload/record", "preload/report", "preload/replay"),
    "serve": ("unit/imports", "preload/doors", "preload/sharing", "preload/ipc", "preload/hostile",
              "preload/record", "preload/registers", "preload/midway", "preload/lacking", *PROGRAMS,
              "spill/spill endings", "spill/spill pause", "spill/spill share", "spill/spill tags",
              "stress/stress"),
    "service": ("preload/ipc", "preload/hostile", "spill/spill endings", "spill/spill pause",
                "spill/spill share", "spill/spill tags", *PROGRAMS),
    "setup": ("preload/*", "fault/faults"),
    "stats": ("unit/stats*", "unit/log", "preload/programs", "preload/hostile", "preload/top",
              "preload/oom", "preload/report"),
    "submit": ("unit/cut", "unit/kernel_name", "unit/tensor_map", *TRACK),
    "torch": ("unit/torch_*", "torch/torch object", "torch/torch sharing", "torch/torch oom_words",
              "torch/torch graphs", "torch/torch gpt2_like", "torch/torch side_streams"),
}


def mutated(name):
    """True if the file, relative to the tree, is one whose mutants are made."""
    path = pathlib.PurePosixPath(name)
    return path.suffix == ".c" and path.parts[0] == "src" and not any(
        path.is_relative_to(left) for left in LEFT_OUT)


def of_a_check(mutant_id):
    """True if a mutant, by its id, is in a function that only tests call."""
    return mutant_id.rsplit(":", 2)[0] in LEFT_OUT_FUNCTIONS


def folder(name):
    """The layer of a file of src/."""
    path = pathlib.PurePosixPath(name)
    return path.parts[1] if len(path.parts) > 2 else path.stem


def judges(name, test):
    """True if a test, as suite/name, judges the mutants of a file."""
    return any(fnmatch.fnmatchcase(test, pattern) for pattern in SUITES.get(folder(name), ()))
