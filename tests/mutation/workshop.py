"""A copy of the tree with a build of its own, where one file at a time is mutated.

The build is optimised, so that most mutants that change nothing have the same machine code; it has
no debugging information, and it has the checks that a release build leaves out."""
import hashlib
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = ("-Doptimization=2", "-Ddebug=false", "-Db_ndebug=false", "-Dbench=false")

# A mutant may loop, or allocate without end.
SLOWEST = 6          # times what the test took unbroken
LEAST_SECONDS = 10
DATA_BYTES = 20 << 30  # private memory of a process; 2000 threads have 16 GiB of stacks
SKIPPED = 77


def tracked():
    """The files of the tree, with new ones that are not ignored."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})


def bound():
    """In a child: the kernel ends it first when memory is short, and it leaves no core."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000")


class Workshop:
    def __init__(self, name):
        self.home = ROOT / "build-mutation" / name
        self.tree = self.home / "tree"
        self.build = self.home / "build"
        self.objects = {}    # of a file: the paths below the build folder
        self.arguments = {}  # of a file: what matters of its command
        self.tests = {}      # by suite/name
        self.measured = {}   # of a test: the tree it ran on unbroken, the seconds, if it passed
        self.digest = None   # of the tree, without its documents

    def open(self):
        """Brings the copy up to date."""
        names = tracked()
        everything = hashlib.sha256()
        for old in (path for path in self.tree.rglob("*") if path.is_file()):
            if str(old.relative_to(self.tree)) not in names:
                old.unlink()
        for name in names:
            copy = self.tree / name
            if not name.startswith(("docs/", "tests/mutation/")) and not name.endswith(".md"):
                everything.update((ROOT / name).read_bytes())
            if not copy.exists() or copy.read_bytes() != (ROOT / name).read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, copy)
                shutil.copymode(ROOT / name, copy)
        self.digest = everything.hexdigest()
        if (self.home / "tests.json").exists():
            self.measured = json.loads((self.home / "tests.json").read_text())
        if not (self.build / "build.ninja").exists():
            subprocess.run(["meson", "setup", *OPTIONS, self.build, self.tree], check=True,
                           stdout=subprocess.DEVNULL)
        # Made anew if the files meson.build have changed.
        subprocess.run(["ninja", "-C", self.build, "--quiet", "build.ninja"], check=True,
                       stdout=subprocess.DEVNULL)
        self.read_commands()
        self.read_tests()

    def introspect(self, what):
        return json.loads(subprocess.run(["meson", "introspect", self.build, "--" + what],
                                         capture_output=True, text=True, check=True).stdout)

    def read_commands(self):
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            path = pathlib.Path(os.path.realpath(os.path.join(entry["directory"], entry["file"])))
            if not path.is_relative_to(self.tree):
                continue
            name = str(path.relative_to(self.tree))
            self.objects.setdefault(name, []).append(entry["output"])
            words = shlex.split(entry["command"])
            kept = []
            for word, following in zip(words, words[1:]):
                if word in ("-isystem", "-I"):
                    kept += [word, os.path.join(self.build, following)]
                elif word.startswith("-I"):
                    kept.append("-I" + os.path.join(self.build, word[2:]))
                elif word.startswith(("-D", "-std=")):
                    kept.append(word)
            self.arguments.setdefault(name, kept)

    def read_tests(self):
        outputs = {target["id"]: [os.path.relpath(path, self.build) for path in target["filename"]]
                   for target in self.introspect("targets")}
        # Policies are read at run time, which the tests do not declare.
        policies = [path for paths in outputs.values() for path in paths
                    if path.startswith("policies/")]
        for test in self.introspect("tests"):
            suites = [suite.partition(":")[2] for suite in test["suite"]]
            if "long" not in suites:
                test["outputs"] = [path for target in test["depends"]
                                   for path in outputs.get(target, [])] + policies
                self.tests[f"{suites[0]}/{test['name']}"] = test

    # ---- building and running ----

    def ninja(self, outputs):
        """True if the outputs could be built."""
        done = subprocess.run(["ninja", "-C", self.build, "--quiet", *sorted(set(outputs))],
                              capture_output=True, text=True)
        self.said = done.stdout + done.stderr
        return done.returncode == 0

    def make(self, tests):
        return self.ninja([path for test in tests for path in self.tests[test]["outputs"]])

    def code(self, name):
        """A digest of the objects made from a file, brought up to date; None if it cannot be
        compiled."""
        if not self.ninja(self.objects[name]):
            return None
        return hashlib.sha256(b"".join((self.build / path).read_bytes()
                                       for path in self.objects[name])).hexdigest()

    def run(self, test, limit):
        """How a test ends: "passed", "skipped", "failed" or "time limit"; and the seconds."""
        begun = time.monotonic()
        with open(self.home / "test.log", "wb") as log:
            child = subprocess.Popen(self.tests[test]["cmd"], cwd=self.build, stdout=log,
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                     env=os.environ | self.tests[test]["env"],
                                     start_new_session=True, preexec_fn=bound)
            try:
                status = child.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            # What a test has started ends with it.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
        ends = {0: "passed", SKIPPED: "skipped", None: "time limit"}
        return ends.get(status, "failed"), time.monotonic() - begun

    def limit(self, test):
        return max(LEAST_SECONDS, SLOWEST * self.seconds(test))

    def seconds(self, test):
        """What the test takes on the unbroken tree, or a guess."""
        return self.measured[test][1] if test in self.measured else self.tests[test]["timeout"] / 20

    def sound(self, test):
        """True if the test passes on the unbroken tree, which the caller has restored."""
        digest, _, good = self.measured.get(test, (None, 0, False))
        if digest != self.digest:
            if not self.make([test]):
                raise RuntimeError("the tree does not build:\n" + self.said)
            ends, seconds = self.run(test, self.tests[test]["timeout"])
            good = ends == "passed"
            if not good:
                print(f"{test} is not used: {ends} on the unbroken tree", flush=True)
            self.measured[test] = (self.digest, seconds, good)
            (self.home / "tests.json").write_text(json.dumps(self.measured))
        return good

    def is_measured(self, test):
        return test in self.measured and self.measured[test][0] == self.digest

    # ---- mutating ----

    def write(self, mutant):
        (self.tree / mutant.file).write_bytes(mutant.apply((ROOT / mutant.file).read_bytes()))

    def restore(self, name):
        (self.tree / name).write_bytes((ROOT / name).read_bytes())
