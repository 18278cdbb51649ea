#!/usr/bin/env python3
"""cuGetProcAddress of NVIDIA's library, both versions, for every name of cuda.h, at every version
of CUDA that brought a function, with each flag for streams: under spillway the answer is spillway's
entry for each intercepted function, and the library's own for every other."""
import os
import sys

import libraries
import machine

sys.path.insert(0, str(libraries.SOURCE / "src/driver"))
import submit_rows  # noqa: E402

HEADERS = os.environ["CUDA_HEADERS"]
DOORS = (1, 2)
FLAGS = (0, 1, 2)
PER_THREAD = 2
SHOWN = 20  # of many wrong answers
FAR = 99000  # a version of CUDA that no driver has


def names(branch):
    """What a program may ask for: the functions of cuda.h and of the library, without version."""
    symbols = set(submit_rows.prototypes(HEADERS))
    symbols |= {symbol for symbol in machine.exports(library(branch)) if symbol.startswith("cu")}
    return sorted({submit_rows.split(symbol)[0] for symbol in symbols} | {"cuNoSuchFunction"})


def library(branch):
    return libraries.driver_folder(branch) / "libcuda.so.1"


def versions():
    """The versions of CUDA at which answers may change, and one to each side of them."""
    since = {row.since for row in machine.rows()}
    since |= set(submit_rows.versions(HEADERS, submit_rows.prototypes(HEADERS)).values())
    return sorted(since | {version - 10 for version in since} | {2000, FAR})


class Resolve(machine.Case):
    known = {}

    def answers(self, branch, preload):
        """(door, flags, name, version) -> the answer, as resolve_all.c prints it."""
        if (branch, preload) not in self.known:
            self.known[branch, preload] = self.ask(branch, preload)
        return self.known[branch, preload]

    def ask(self, branch, preload, simulated=False):
        asked = versions()
        env = machine.environment(branch, preload)
        if simulated:
            env["LD_LIBRARY_PATH"] = str(machine.ROOT / "sim")
        done = self.run_command([machine.PROGRAMS / "resolve_all", *asked], env,
                                stdin="".join(name + "\n" for name in names(branch)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = {}
        for line in done.stdout.splitlines():
            door, flags, name, *cells = line.split()
            for version, cell in zip(asked, cells, strict=True):
                found[int(door), int(flags), name, version] = cell
        self.assertEqual(len(found), len(DOORS) * len(FLAGS) * len(names(branch)) * len(asked))
        return found

    def test_entries_for_intercepted_functions_and_the_own_for_others(self):
        ours = {row.symbol for row in machine.rows()}
        for branch in libraries.drivers():
            with self.of(branch):
                exported = machine.exports(library(branch))
                entries = {f"libcuda+{address:x}": symbol for symbol, address in exported.items()
                           if symbol in ours}
                there = ours & exported.keys()
                self.assertEqual(len(entries), len(there), "two names for one address")
                bare = self.answers(branch, ())
                pool = self.answers(branch, (machine.OBJECT,))
                wrong = [(key, answer, pool[key]) for key, answer in bare.items()
                         if pool[key] != entries.get(answer, answer)]
                self.assertEqual(wrong[:SHOWN], [], f"{len(wrong)} of {len(bare)}")
                self.assertEqual(there - set(pool.values()), set(), "never answered")

    def test_rows_name_what_the_resolver_answers(self):
        """At the version and with the flags of a row the library answers with that very symbol, and
        just below the version it does not."""
        for branch in libraries.drivers():
            with self.of(branch):
                exported = machine.exports(library(branch))
                bare = self.answers(branch, ())
                for row in machine.rows():
                    own = f"libcuda+{exported[row.symbol]:x}" if row.symbol in exported else None
                    for door in DOORS:
                        answer = bare[door, row.flags, row.base, row.since]
                        before = bare.get((door, row.flags, row.base, row.since - 10))
                        if own is None:
                            self.assertNotIn(row.symbol, answer)
                        else:
                            self.assertEqual(answer, own, row)
                            self.assertNotEqual(before, own, row)

    def test_the_simulated_driver_answers_alike(self):
        """For all names of cuda.h that both have, at the versions that both know. The simulated
        driver is newer: what came after the real one is left out."""
        branch = libraries.drivers()[-1]
        since = submit_rows.versions(HEADERS, submit_rows.prototypes(HEADERS))
        real = self.symbols(self.answers(branch, ()), library(branch))
        sim = self.symbols(self.ask(branch, (), simulated=True), machine.ROOT / "sim/libcuda.so.1")
        both = {submit_rows.split(symbol)[0] for symbol, version in since.items()
                if version <= branch.cuda}
        newer = {submit_rows.split(symbol)[0] for symbol, version in since.items()
                 if version > branch.cuda}
        wrong = [(key, answer, sim[key]) for key, answer in real.items()
                 if key[2] in both and sim[key] != answer and
                 not (key[2] in newer and key[3] > branch.cuda)]
        self.assertEqual(wrong[:SHOWN], [], f"{len(wrong)} of {len(real)}")

    @staticmethod
    def symbols(answers, path):
        """The answers with symbols instead of places in the library."""
        named = {f"libcuda+{address:x}": symbol
                 for symbol, address in machine.exports(path).items()}
        return {key: named.get(answer, answer) for key, answer in answers.items()}


if __name__ == "__main__":
    machine.main()
