#!/usr/bin/env python3
"""scripts/house counts a small tree, whose figures are known, as its help says."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import tree
from house import calls

HOUSE = tree.ROOT / "scripts/house"
# Each file shows at least one thing that counts, and most one that looks like it and does not.
FILES = {
    "src/preload.c": """
#include "track/process.h"
/* spw_process.mode in a comment is no use, and its wish is no identifier. */
const struct spw_track_ops spw_track_ops = {.open = open_it, .close = close_it};
static struct spw_migrate_config config = {.label = label_of};
static int uses(void)
{
    return spw_process.mode + spw_process.check;
}
""",
    "src/track/process.h": """
struct spw_track_ops {
    void (*open)(void *vm);
    bool (*close)(void *vm, int of, struct closing *with);
};
extern const struct spw_track_ops spw_track_ops;
bool spw_track_serves(void);
""",
    "src/track/state.h": "extern struct spw_process spw_process;\n",
    "src/track/device.h": """
struct spw_pool *spw_track_device_pool(struct spw_device *device);
""",
    "src/track/capture.h": """
#include "track/state.h"
CUresult spw_track_capture_status(CUstream stream, bool *ret_capturing);
""",
    "src/track/cold.h": "int spw_track_cold(void);\n",
    "src/common/size.h": "uint64_t spw_size_round(uint64_t bytes);\n",
    "src/serve/account.h": "bool spw_serve_account_is_open(void);\n",
    "src/pool/pool.h": "enum spw_err spw_pool_alloc(struct spw_pool *pool, uint64_t bytes);\n",
    "src/pool/vm_ops.h": "struct spw_vm_ops {\n    int (*map)(void *vm);\n};\n",
    "src/pool/pool.c": """
static int whole(struct spw_pool *pool)
{
    return 0;
}

static int part(struct spw_pool_part *part,
                int more)
{
    return whole(part->pool) + more;
}

int spw_pool_none(void)
{
    return 0;
}

int spw_pool_const(const struct spw_pool *pool, int (*callback)(int))
{
    return 0;
}
""",
    "src/backend/backend.c": "static const struct spw_vm_ops ops = {\n    .map = vm_map,\n};\n",
    "src/migrate/migrate.h":
        "struct spw_migrate_config {\n    int device;\n    void (*label)(void);\n};\n",
    "src/migrate/tuning.def":
        "/* SPW_TUNING(name, value) */\nSPW_TUNING(ONE, 1)\nSPW_TUNING(TWO, 2)\n",
    "src/policy/json.c":
        "struct json {\n    int (*parse)(void);\n};\nstatic struct json json = {.parse = read};\n",
    "src/serve/allocations.c": """
#include "common/size.h"
#include "pool/pool.h"
#include "serve/account.h"
#include "track/capture.h"
#include "track/cold.h"
#include "track/device.h"
#include "track/process.h"
static __attribute__((noinline)) int rarely(void)
{
    return spw_track_cold() + spw_track_serves();
}

static int take(struct spw_device *device)
{
    struct spw_pool *pool = spw_track_device_pool(device);

    return pool == NULL || !spw_serve_account_is_open() ? rarely()
                                                         : spw_pool_alloc(pool, spw_size_round(1));
}

#define ALLOC(stream) \\
    do { \\
        bool capturing = false; \\
        spw_track_capture_status((stream), &capturing); \\
        return take(NULL); \\
    } while (0)

CUresult spw_serve_cuMemAllocAsync(CUstream stream)
{
    ALLOC(stream);
}

int spw_serve_other(void)
{
    return spw_process.mode;
}
""",
    "src/cli/live/a.c": '#include "cli/live/b.h"\nint told_free, wishful, is_told;\n',
    "src/cli/live/a.h": """
/* The command tells what it has read of each process here.
 * Two of the words in which else is hidden. Says too little. */
""",
    "src/cli/live/b.c": '#include "cli/live/a.h"\n',
    "src/cli/live/b.h": "",
    "src/gpu/card.c": "\n",
    "src/sim/sim.c": '#include "sim/only.h"\n',
    "src/sim/only.h": '#include "sim/sim.h"\n',
    "src/sim/sim.h": "",
    "docs/dev/architecture.md": "`src/track/state.h`\n",
    "docs/dev/map/object.md": "\n" * 7 +
                            "`src/pool/`, [`pool`](../../../src/pool/pool.c), `src/none.h`\n",
    "docs/long.md": "\n" * 7,
    "docs/long.1": "\n" * 9,
    "docs/dev/results/table.md": "\n" * 8,
}
KNOWN = {
    "files_hit": None, "files_pair": None, "headers_asked": 2, "lines_preload": 9,
    "operations": 2, "operations_handed": 1, "callbacks": 1, "handles": 3,
    "process_uses": 3, "process_files": 2, "writable": None, "largest_folder": 5,
    "pool_share": 50.0, "constants": 2,
    "cycles_object": 0, "cycles_command": 1, "cycles_simulator": 0,
    "off_the_map": 13, "longest_page": 7,
    "lines_object": 98, "lines_command": 7, "lines_simulator": 2,
    "what_object": 0, "told_object": 0, "which_object": 0, "else_object": 0,
    "what_command": 50.0, "told_command": 50.0, "which_command": 50.0, "else_command": 50.0,
    "what_simulator": 0, "told_simulator": 0, "which_simulator": 0, "else_simulator": 0,
    "retired": 2,
}
WRITABLE = """
static int hidden, counts[2] = {1, 2};
static const int constant = 3;
static _Thread_local int of_a_thread;
int shown(void)
{
    static int inside;
    return hidden++ + counts[inside++] + constant + of_a_thread++;
}
"""
# The entry at 100 calls, a helper at all of them, one at few, one by two ways; and the driver's.
CALLS = """
fl={0}/src/serve/a.c
fn=cuMemAllocAsync
1 1
cfi={0}/src/pool/b.c
cfn=always
calls=100 1
1 1
cfi={0}/src/pool/b.c
cfn=half
calls=50 1
1 1
cfi={0}/src/pool/c.c
cfn=rare
calls=89 1
1 1
fl={0}/src/pool/b.c
fn=always
cfn=half
calls=45 1
1 1
fl={0}/src/pool/b.c
fn=half
cfi={0}/src/sim/driver/d.c
cfn=cuMemAllocAsync
calls=95 1
1 1
fl={0}/tests/bench/hot.c
fn=main
cfi={0}/src/serve/a.c
cfn=cuMemAllocAsync
calls=100 1
1 1
"""


def run(*arguments):
    return subprocess.run([sys.executable, HOUSE, *arguments], capture_output=True, text=True,
                          check=True).stdout


class House(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self):
        for name, text in FILES.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def test_known_tree(self):
        self.write()
        found = json.loads(run("--json", "--tree", self.folder))
        self.assertEqual({key: figure["today"] for key, figure in found.items()}, KNOWN)
        self.assertEqual(found["largest_folder"]["where"], "src/track")
        self.assertEqual(found["retired"]["where"], "told_free 1, is_told 1")

    def test_table_marks_what_is_over_its_goal(self):
        self.write()
        rows = run("--tree", self.folder).splitlines()
        self.assertIn("headers asked for facts of a call              2*       1  "
                      "track/capture.h, track/device.h", rows)
        self.assertIn("tuning constants                               2       15  "
                      "src/migrate/tuning.def", rows)

    def test_tree_that_is_none(self):
        done = subprocess.run([sys.executable, HOUSE, "--tree", self.folder], text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected a checkout of spillway", done.stderr)

    def test_this_tree(self):
        """Whatever a row looks for is still found."""
        found = json.loads(run("--json"))
        self.assertEqual(set(found), set(KNOWN))
        for key in ("headers_asked", "lines_preload", "largest_folder", "longest_page",
                    "lines_object", "lines_command", "lines_simulator"):
            self.assertGreater(found[key]["today"], 0, key)

    @unittest.skipUnless(shutil.which("nm"), "no nm")
    def test_writable_objects(self):
        source = self.folder / "writable.c"
        source.write_text(WRITABLE)
        compiler = shlex.split(os.environ.get("BUILD_CC", "cc"))
        subprocess.run([*compiler, "-O0", "-fPIC", "-shared", source, "-o",
                        self.folder / "libspillway.so"], check=True)
        found = json.loads(run("--json", "--build", self.folder))["writable"]
        self.assertEqual(found["today"], 3)
        self.assertEqual(found["where"], "1 in functions; 16 bytes; largest counts")

    def test_functions_that_most_calls_run_through(self):
        build = self.folder / "build"
        functions = calls.way(build, calls.read(CALLS.format(tree.ROOT)), "cuMemAllocAsync")
        self.assertEqual({name for path, name in functions if calls.inside(build, path)},
                         {"cuMemAllocAsync", "always", "half"})
        self.assertEqual({str(path) for path in calls.ours(build, functions)},
                         {"src/serve/a.c", "src/pool/b.c"})

    def test_builds_whose_calls_cannot_be_counted(self):
        found = json.loads(run("--json", "--calls", self.folder))["files_hit"]
        self.assertIsNone(found["today"])
        self.assertRegex(found["where"], "no valgrind|has no tests/bench/hot")


if __name__ == "__main__":
    unittest.main()
