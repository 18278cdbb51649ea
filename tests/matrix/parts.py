"""The parts of the long test matrix: each is a choice of tests in one build, and takes less than an
hour on two processors."""
import dataclasses

# A test that takes most of its time limit alone on a core takes longer when it is sanitized.
SANITIZED = 3
VALGRIND = 20
EMULATED = 20


@dataclasses.dataclass(frozen=True)
class Build:
    """A build folder: the compiler, and the options of Meson."""
    compiler: str = "gcc"
    options: tuple = ()


# The first is build/ and the last build-aarch64/, the others are in build-full/.
BUILDS = {
    "release": Build(),
    "gcc-debug": Build("gcc", ("--buildtype=debug",)),
    "clang-release": Build("clang", ("--buildtype=release",)),
    "clang-debug": Build("clang", ("--buildtype=debug",)),
    "asan": Build("clang", ("--buildtype=debugoptimized", "-Db_sanitize=address,undefined",
                            "-Db_lundef=false")),
    "tsan": Build("clang", ("--buildtype=debugoptimized", "-Db_sanitize=thread",
                            "-Db_lundef=false")),
    "aarch64": Build("aarch64-linux-gnu-gcc", ("-Dwerror=true",)),
}


@dataclasses.dataclass(frozen=True)
class Part:
    """The tests of `build` that are in one of `suites` (empty: in any) and in none of `without`.
    `long`: only those marked as long, or only the others. `words`: a test's name must have one of
    them. `newest`: with the newest PyTorch, of that version of CPython."""
    name: str
    build: str
    suites: tuple = ()
    without: tuple = ()
    long: bool = False
    words: tuple = ("",)
    timeout: int = 1
    valgrind: bool = False
    newest: str = ""

    def takes(self, name, suites):
        return ((not self.suites or bool(suites & set(self.suites)))
                and not suites & set(self.without) and ("long" in suites) == self.long
                and any(word in name for word in self.words))


# The release build runs everything; the others leave out what takes longest and checks no C code.
# Clang's sanitized builds check assertions too, so its debug build leaves out two suites more.
QUICK = ("style", "torch", "driver", "wheel", "programs")
MODULES = ("unit", "sim", "cli", "fuzz", "preload", "object")

PARTS = (
    Part("quick", "release"),
    Part("long: modules, fuzzing", "release", ("unit", "fuzz", "stress", "fault", "object"),
         long=True),
    Part("long: replay, packages", "release", ("preload", "driver", "wheel"), ("aarch64",),
         long=True),
    Part("long: spill", "release", ("spill",), long=True,
         words=("spill long", "guarded long", "adversaries", "pause long", "share")),
    Part("long: spill, traces", "release", ("spill",), long=True, words=("matrix",)),
    *(Part(f"long: chaos, {half}", "release", ("chaos",), long=True, words=words)
      for half, words in (("first half", ("long 1", "long 2")),
                          ("second half", ("long 3", "long 4")))),
    Part("long: faults while spilling", "release", ("spill",), long=True,
         words=("faults long", "faults closed")),
    Part("long: faults while spilling, other modes", "release", ("spill",), long=True,
         words=("faults guarded", "faults foreseen")),
    Part("long: faults while paused", "release", ("spill",), long=True,
         words=("faults asked", "faults swapped", "faults replayed", "faults paused")),
    Part("long: call sites of Python", "release", ("python",), long=True),
    Part("long: the check of a GPU", "release", ("gpu",), long=True),
    Part("long: PyTorch, seeds", "release", ("torch",), long=True, words=(" seeds",)),
    Part("long: PyTorch, little memory", "release", ("torch",), long=True,
         words=(" pressure", " long")),
    *(Part(f"long: features of PyTorch {minors[0]} to {minors[-1]}", "release", ("torch",),
           long=True, words=tuple(f"features {minor}" for minor in minors))
      for minors in (("2.6", "2.7", "2.8", "2.9"), ("2.10", "2.11", "2.12"),
                     ("2.13", "2.14", "2.15"))),
    *(Part(f"newest PyTorch, CPython {version}", "release", ("torch",), newest=version)
      for version in ("3.11", "3.12", "3.13", "3.14")),
    Part("gcc, debug", "gcc-debug", without=QUICK),
    Part("clang, release", "clang-release", without=QUICK),
    Part("clang, debug", "clang-debug", without=(*QUICK, "spill", "stress")),
    Part("AddressSanitizer: modules", "asan", MODULES, timeout=SANITIZED),
    Part("AddressSanitizer: spill, stress", "asan", ("spill", "stress", "chaos"),
         timeout=SANITIZED),
    Part("ThreadSanitizer: modules", "tsan", MODULES, timeout=SANITIZED),
    Part("ThreadSanitizer: spill, stress", "tsan", ("spill", "stress", "chaos"),
         timeout=SANITIZED),
    Part("valgrind", "gcc-debug", ("unit",), timeout=VALGRIND, valgrind=True),
    Part("aarch64 under qemu: wheel, PyTorch", "release", ("aarch64",), long=True),
    Part("aarch64 under qemu: modules", "aarch64", ("unit", "sim", "object"), timeout=EMULATED),
    Part("aarch64 under qemu: preload", "aarch64", ("preload",), timeout=EMULATED),
    Part("aarch64 under qemu: spill", "aarch64", ("spill",), timeout=EMULATED),
)
