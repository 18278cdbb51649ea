#!/usr/bin/env python3
"""scripts/mutate makes the mutants that a small C file has, and names them by what they change."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77

sys.path.insert(0, str(ROOT / "tests/mutation"))
try:
    import mutants
except ImportError:
    # Debian's package is for the system's Python only.
    system = pathlib.Path("/usr/bin/python3")
    has = [system, "-c", "import clang.cindex"]
    if sys.executable == str(system) or not system.exists() or \
            subprocess.run(has, stderr=subprocess.DEVNULL).returncode:
        print("no clang.cindex for Python")
        sys.exit(SKIPPED)
    sys.exit(subprocess.run([system, *sys.argv]).returncode)
import suites

SOURCE = """
enum spw_err { SPW_OK, SPW_E_LIMIT };
#define LESS(a, b) ((a) < (b))
typedef _Bool bool;
int printf(const char *format, ...);
void lock(int *with);
enum spw_err make(int first, int second);

static enum spw_err work(int *with, int count)
{
    enum spw_err err;

    lock(with);
    err = make(count, *with);
    if (err != SPW_OK) {
        return err; /* a < b */
    }
    if (LESS(count, *with)) {
        printf("%d < %d", count, 1 + 2);
    }
    return count > 2 && *with ? SPW_OK : SPW_E_LIMIT;
}

bool outer(int *with)
{
    return work(with, 3) == SPW_OK;
}

const char *name(void)
{
    return "a < b";
}
"""

CHANGES = {
    ("work", "lock", "lock(with) -> (void)0"),
    ("work", "assignment", "err = make(count, *with) -> (void)0"),
    ("work", "swap", "count, *with -> *with, count"),
    ("work", "compare", "!= -> =="),
    ("work", "exit", "err != SPW_OK -> (err != SPW_OK) && 0"),
    ("work", "error", "err -> SPW_OK"),
    ("work", "compare", "> -> >="),
    ("work", "constant", "2 -> 3"),
    ("work", "logic", "&& -> ||"),
    ("work", "operand", "count > 2 && *with -> count > 2"),
    ("work", "operand", "count > 2 && *with -> *with"),
    ("work", "error", "count > 2 && *with ? SPW_OK : SPW_E_LIMIT -> SPW_OK"),
    ("outer", "constant", "3 -> 4"),
    ("outer", "compare", "== -> !="),
    ("outer", "return", "work(with, 3) == SPW_OK -> !(work(with, 3) == SPW_OK)"),
    ("name", "return", '"a < b" -> NULL'),
}


class Mutants(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def made(self, source):
        (self.folder / "small.c").write_text(source)
        return mutants.of_file(self.folder, "small.c", ["-std=gnu17"])

    def test_the_changes_are_those_that_are_expected(self):
        found = [(*mutant.id.split(":")[1:3], mutant.change()) for mutant in self.made(SOURCE)]
        self.assertEqual(sorted(found), sorted(CHANGES))

    def test_every_mutant_compiles_and_differs_from_the_others(self):
        texts = set()
        for mutant in self.made(SOURCE):
            texts.add(mutant.apply(SOURCE.encode()))
            (self.folder / "broken.c").write_bytes(
                b"#include <stddef.h>\n" + mutant.apply(SOURCE.encode()))
            with self.subTest(mutant.change()):
                subprocess.run(["cc", "-std=gnu17", "-fsyntax-only", "-w",
                                self.folder / "broken.c"], check=True)
        self.assertEqual(len(texts), len(CHANGES))

    def test_an_id_survives_changes_elsewhere(self):
        before = {mutant.id: mutant.line for mutant in self.made(SOURCE)}
        other = "int other(void)\n{\n    return 1 + 1;\n}\n\n"
        moved = SOURCE.replace("bool outer", other + "bool outer")
        after = {mutant.id: mutant.line for mutant in self.made("\n\n" + moved)
                 if ":other:" not in mutant.id}
        self.assertEqual(before.keys(), after.keys())
        self.assertTrue(all(after[key] > before[key] for key in before))
        changed = {mutant.id for mutant in self.made(SOURCE.replace("count > 2", "count > 5"))}
        self.assertEqual(len(before.keys() - changed), 6)

    def test_the_same_place_twice_makes_two_mutants(self):
        found = self.made("int f(int a) { a += 1; a += 1; return a; }\n")
        self.assertEqual(len({mutant.id for mutant in found}), len(found))
        self.assertEqual(sum(":constant:" in mutant.id for mutant in found), 2)


class Tables(unittest.TestCase):
    def test_every_folder_that_is_mutated_has_tests(self):
        names = [str(path.relative_to(ROOT)) for path in ROOT.glob("src/**/*.c")]
        folders = {suites.folder(name) for name in names if suites.mutated(name)}
        self.assertEqual(folders, set(suites.SUITES))

    def test_each_equivalent_has_a_reason(self):
        rows = json.loads((ROOT / "tests/mutation/equivalents.json").read_text())
        for row in rows:
            self.assertGreater(len(row["reason"].split()), 4, row)
        self.assertEqual(len({row["id"] for row in rows}), len(rows))


if __name__ == "__main__":
    unittest.main()
