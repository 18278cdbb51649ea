#!/usr/bin/env python3
"""Layers use each other in one direction only, and each layer keeps to what it may do."""
import pathlib
import re
import unittest

import modules
import tree

# What each layer may include, besides itself and include/spillway.h. All that the rows of a layer
# name is below it; src/preload.c alone knows every layer.
LOW = "common system driver pool callsite policy stats record migrate backend "
BELOW = {
    "common": "",
    "system": "common",
    "driver": "common system",
    "pool": "common system",
    "callsite": "common system pool",
    "policy": "common system pool callsite stats",
    "stats": "common system pool",
    "record": "common system callsite stats",
    "migrate": "common system pool",
    "ipc": "common system",
    "backend": "common system pool driver",
    "process": LOW,
    "device": LOW + "process",
    "program": LOW + "process device",
    "submit": LOW + "process device program",
    "graph": LOW + "process device program submit",
    "call": LOW + "process device program submit graph",
    "setup": LOW + "process device",
    "service": LOW + "process device program submit",
    "serve": LOW + "ipc process device program submit graph call service",
    "torch": LOW + "ipc process device program submit call serve setup",
    "companion": LOW + "process",
    "intercept": LOW + "ipc process device program submit graph call service serve setup companion",
    "preload": LOW + "ipc process device program submit graph call service serve torch intercept "
               "setup",
    "gpu": "common",
    "cli": "common system driver pool callsite policy stats record gpu",
    "sim": "common system gpu",
}
# Rooms inside a layer, lowest first: each may use those before it, and every file is in one. A room
# is a folder, or files of the layer's own folder.
GROUPS = {
    "callsite": ["label.c label.h stack_cache.c stack_cache.h strings.c strings.h table.c table.h "
                 "tag.c tag.h text.c text.h",
                 "cpython",
                 "capture.c capture.h code_frees.c code_frees.h facts.c facts.h modules.c "
                 "modules.h names.c names.h native.c native.h python.c python.h report.c "
                 "report.h rule.c rule.h shm.c shm.h state.c state.h symbols.c symbols.h "
                 "top_sites.c top_sites.h"],
    "cli": ["console", "inspect", "pause", "live", "recording", "cudnn", "launch", "report",
            "usage", "policies", "verdict", "fit", "advise", "keep", "doctor", "commands"],
    "pool": ["accounts.c accounts.h attributes.h export.h fences.h move.h pool.h request.h swap.h "
             "vm_ops.h",
             "extents", "order", "memory", "space", "plan", "alloc", "move",
             "check.c lifecycle.c"],
    "migrate": ["tuning.def tuning.h", "learn", "host", "move", "migrate.c migrate.h",
                "exporter.c exporter.h"],
}
# The launcher reads what the simulated driver has written down in mapped files: the layout of each,
# a header that needs common alone, is shared.
EXCEPTIONS = {("src/cli/cudnn/answers.h", "sim/cudnn_question.h"),
              ("src/cli/cudnn/choice.h", "sim/cudnn_question.h"),
              ("src/cli/cudnn/library.h", "sim/cudnn_question.h"),
              ("src/cli/cudnn/server.c", "sim/cudnn_question.h"),
              ("src/cli/verdict/sim_result.c", "sim/record.h"),
              ("src/cli/verdict/sim_result.c", "sim/devices.h")}
# The folders inside a layer, and those that each of them may use.
FOLDERS = {
    "sim": {
        "driver/core": "",
        "driver/code": "",
        "driver/memory": "driver/core driver/code",
        "driver/compute": "driver/core driver/memory",
        "pytorch": "driver/memory driver/compute",
        "driver/exec": "driver/core driver/memory",
        "driver/kernels": "driver/core driver/code driver/memory driver/compute pytorch "
                          "driver/exec",
        "driver/graph": "driver/core driver/memory driver/exec",
        "driver/api": "driver/core driver/code driver/memory driver/exec driver/kernels "
                      "driver/graph",
        "driver/api/memory": "driver/core driver/memory driver/exec driver/graph driver/api",
        "runtime": "",
        "libs/common": "",
    } | {f"libs/{name}": "libs/common" for name in
         "cublas cublasLt cudnn cufft cusolver cusparse nccl nvml".split()},
}
# Any folder of the simulator may use these: the driver's libraries read them too.
SIM_SHARED = {"sim/cudnn_question.h", "sim/demand.h", "sim/driver/core/control.h",
              "sim/devices.h", "sim/record.h"}
# Linked into libspillway.so, where the process is somebody else's.
PRELOADED = set(BELOW) - {"gpu", "cli", "sim"}
# The pool's interface. pool.h includes its parts; vm_ops.h is what the backend implements, and
# accounts.h the figures that the call-site table and the statistics share with the pool.
POOL_INTERFACE = {"pool/pool.h", "pool/vm_ops.h", "pool/accounts.h"}
SOURCES = tree.matching("src", ".c", ".h", ".def")


def preloaded(path):
    return tree.layer(path) in PRELOADED


def room(module, groups):
    """The place of a module's room in `groups`; -1 if it has none."""
    name, *inside = module.parts[2:]
    return next((place for place, names in enumerate(groups)
                 if name in (names.split() if inside else re.findall(r"(\w+)\.", names))), -1)


class Layers(unittest.TestCase):
    maxDiff = None

    def test_includes_point_down(self):
        wrong = []
        for path in SOURCES:
            allowed = set(BELOW[tree.layer(path)].split()) | {tree.layer(path)}
            for name in modules.included(path):
                if name == "spillway.h" or (str(path), name) in EXCEPTIONS:
                    continue
                if "/" not in name or name.split("/")[0] not in allowed:
                    wrong.append(f"{path} includes {name}")
        self.assertEqual(wrong, [])

    def test_order_of_includes(self):
        """As CONTRIBUTING.md has it. Lists inside the code (.def) are no part of it."""
        wrong = []
        for path in tree.matching("src", ".c", ".h"):
            own = f'"{path.relative_to("src").with_suffix(".h")}"'
            groups = [re.findall(r'["<].*[">]', group) for group in
                      re.findall(r'(?:^#include (?!.*\.def").*\n)+', tree.text(path),
                                 re.MULTILINE)]
            rest = groups
            if groups and groups[0][0] == own:
                groups[0].pop(0)
            elif path.suffix == ".c" and groups and groups[0][0].startswith('"'):
                rest = groups[1:]  # the first: what the source implements
            kinds = "".join(name[0] for group in rest for name in group)
            if (not re.fullmatch('"*<*|<*"*', kinds) or
                    any(own in group or group != sorted(group) or
                        len({name[0] for name in group}) > 1 for group in groups)):
                wrong.append(str(path))
        self.assertEqual(wrong, [])

    def test_pool_is_used_through_its_interface(self):
        wrong = []
        for path in SOURCES:
            names = set(re.findall(r'^\s*#\s*include\s+"(pool/[^"]+)"', tree.text(path),
                                   re.MULTILINE))
            if tree.layer(path) != "pool":
                wrong += [f"{path} includes {name}" for name in names - POOL_INTERFACE]
        self.assertEqual(wrong, [])

    def test_names_point_down(self):
        """No layer uses a function or variable of one above it."""
        found = []
        for path in filter(preloaded, SOURCES):
            above = PRELOADED - set(BELOW[tree.layer(path)].split()) - {tree.layer(path), "preload"}
            pattern = r"\bspw_(" + "|".join(sorted(above)) + r")_\w+" if above else r"(?!)"
            found += self.find(pattern, lambda other, path=path: other == path)
        self.assertEqual(found, [])

    def test_rooms_inside_a_layer_point_down(self):
        """By includes and, where there is a build, by symbols."""
        wrong = []
        for layer, groups in GROUPS.items():
            paths = [path for path in SOURCES if tree.layer(path) == layer]
            wrong += [f"{path} is in none of {groups}" for path in paths
                      if room(modules.module(path), groups) < 0]
            edges = modules.uses(paths)
            wrong += [f"{node} {why} of {other}" for node in sorted(edges)
                      for other, why in sorted(edges[node].items())
                      if room(other, groups) > room(node, groups)]
        self.assertEqual(wrong, [])

    def test_folders_inside_a_layer(self):
        """By includes and, where there is a build, by symbols."""
        for layer, below in FOLDERS.items():
            with self.subTest(layer=layer):
                root = pathlib.Path("src", layer)
                paths = [path for path in tree.matching("src", ".c", ".h")
                         if tree.layer(path) == layer
                         and str(path.relative_to("src")) not in SIM_SHARED]
                self.assertEqual({path.parent for path in paths}, {root / name for name in below})
                self.assertEqual(modules.against_order(root, below, modules.uses(paths)), [])

    def test_modules_use_each_other_in_one_direction(self):
        for layer in BELOW:
            with self.subTest(layer=layer):
                paths = [path for path in tree.matching("src", ".c", ".h")
                         if tree.layer(path) == layer]
                edges = modules.between_sources(modules.uses(paths), paths)
                self.assertEqual([modules.describe(component, edges)
                                  for component in modules.cycles(edges)], [])

    def find(self, pattern, where):
        """Occurrences of a pattern in the code of the files that `where` chooses."""
        found = []
        for path in filter(where, SOURCES):
            for match in re.finditer(pattern, tree.code(path)):
                line = tree.line_of(tree.code(path), match.start())
                found.append(f"{path}:{line}: {match.group()}")
        return found

    def test_pool_is_pure(self):
        """No CUDA, no loader, no environment, no clock."""
        self.assertEqual(self.find(r"#\s*include\s+<(cuda|dlfcn|time|sys/time)\S*>|\bgetenv\b|"
                                   r"\bclock_gettime\b",
                                   lambda path: tree.layer(path) == "pool"), [])

    def test_environment_is_read_in_one_place(self):
        allowed = {"src/common/options.c", "src/system/start.c"}
        self.assertEqual(self.find(r"\b(secure_)?getenv\s*\(|\benviron\b",
                                   lambda path: preloaded(path) and str(path) not in allowed), [])

    def test_nothing_ends_the_process(self):
        self.assertEqual(self.find(r"(?<![\w.>])(abort|exit|_exit|quick_exit|_Exit|assert|raise)"
                                   r"\s*\(|__builtin_trap", preloaded), [])

    def test_driver_symbols_come_from_a_handle(self):
        """Only the real dlsym, and libraries above the driver, are looked up in the order of the
        libraries."""
        allowed = {"src/driver/dl.c", "src/intercept/dlsym.c", "src/intercept/library.c"}
        self.assertEqual(self.find(r"\bRTLD_(NEXT|DEFAULT)\b",
                                   lambda path: preloaded(path) and str(path) not in allowed), [])

    def test_likely_has_one_name(self):
        """The compiler's own is behind SPW_LIKELY and SPW_UNLIKELY."""
        self.assertEqual(self.find(r"\b__builtin_expect\b",
                                   lambda path: str(path) != "src/common/likely.h"), [])

    def test_locks_are_listed(self):
        """Every mutex of the preloaded object is in lock.def, and everything there is used."""
        allowed = {"src/system/lock.h", "src/system/lock.c"}
        self.assertEqual(self.find(r"\bpthread_(mutex|rwlock|spin)\w*|\bmtx_\w+",
                                   lambda path: preloaded(path) and str(path) not in allowed), [])
        listed = re.findall(r"^SPW_LOCK\w*\((\w+),", tree.text(tree.pathlib.PurePath(
            "src/system/lock.def")), re.MULTILINE)
        code = "".join(tree.code(path) for path in SOURCES if str(path) not in allowed)
        self.assertNotEqual(listed, [])
        self.assertEqual([name for name in listed if not re.search(
            rf"\bspw_lock\w*\(.*\b(spw_locks\.|SPW_LOCK_RANK_){name}\b", code)], [])

    def test_no_line_comments_and_no_leftovers(self):
        found = []
        for path in tree.matching("src include tests", ".c", ".h", ".def", ".cu", ".cpp"):
            stripped = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', "", tree.text(path), flags=re.S)
            if re.search(r"//", stripped):
                found.append(f"{path}: a // comment")
            if re.search(r"\b(TODO|FIXME|XXX)\b", tree.text(path)):
                found.append(f"{path}: an unfinished place")
            # newer_cuda.h declares NVIDIA's names.
            if (re.search(r"\btypedef\s+(struct|union|enum)\b", stripped) and
                    str(path) != "src/common/newer_cuda.h"):
                found.append(f"{path}: a struct typedef")
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
