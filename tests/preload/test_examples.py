#!/usr/bin/env python3
"""The examples in the documents run as they are written: the lines of shell, with programs in the
places of training scripts; rules of policies; and the Python code about pauses."""
import json
import re
import subprocess
import sys
import textwrap
import unittest

import harness
from harness import COMMAND, PROGRAMS, SOURCE

PAGES = ("README.md", "llms.txt", "CONTRIBUTING.md", "policies/README.md", "docs/spillway.1",
         *(str(path.relative_to(SOURCE)) for top in ("docs", "tests")
           for path in sorted((SOURCE / top).rglob("*.md"))
           if path.parts[len(SOURCE.parts):][:2] != ("tests", "traces")))
COMMANDS = re.compile(r"([A-Z_]+=\S+ )*(spillway|python3?|(scripts|packing)/\S+|[\w./-]+/spillway|"
                      r"meson|pip|git|mpirun|srun|torchrun|accelerate|"
                      r"prometheus-node-exporter)(?!\S)")
# Lines that cannot run here: a part of the line, and the reason.
NOT_RUN = (
    (r"^git clone", "a network"),
    (r"^scripts/(setup|demo|wheel|bundle)\b|^pip install", "installs software"),
    (r"^scripts/(build|test|mutate|house)\b", "builds and tests this tree"),
    (r"^meson (setup|test)", "builds and tests this tree"),
    (r"^packing/emulate", "programs for aarch64: the long matrix"),
    (r"^scripts/gpu-(check|results)", "a GPU: the suite `gpu` rehearses it"),
    (r"--prometheus|^prometheus-", "runs until it is ended: `integrations prometheus`"),
    (r"--world 1024", "PyTorch: `torch world`"),
    (r"/test_features\.py", "PyTorch: `torch features`"),
    (r"--slowdown", "a model of PyTorch: `torch recompute`"),
    (r"--cudnn", "the cuDNN of PyTorch: `torch cudnn`"),
    (r"^spillway (top|doctor)", "the tests `top` and `command`"),
)
# Blocks of code of another kind are run by the tests that name their page.
ELSEWHERE = {"docs/recipes/README.md": ("tests/integrations/test_recipes.py",),
             "docs/recipes/integrations.md": ("tests/integrations/test_callbacks.py",
                                              "tests/integrations/test_pytest.py")}
# What a page expects to be there: files with its own first example of JSON, and lines to run first.
RECORDED = "spillway sim --record {0}.rec --stats {0}.json -- python train.py"
JOB = "RANK={0} spillway sim --record 'job-%r.rec' --stats 'job-%r.json' -- python train.py"
POLICIES = {"policies/README.md": "my.json", "docs/guide/recompute.md": "layers.json"}
BEFORE = {
    "docs/guide/recording.md": (RECORDED.format("before"), RECORDED.format("after"),
                                JOB.format(0), JOB.format(1)),
    "docs/guide/advise.md": (RECORDED.format("r"),
                             "echo '{\"version\": 1, \"rules\": []}' > advice.json"),
    "llms.txt": (RECORDED.format("s"),),
}
# Parts of lines that stand for something else.
PLACES = ((" SITE", " 'python:train.py:forward:42'"), ("/scratch", "."), ("./other-job", "true"))
HOLDER = """
import ctypes
import sys

runtime = ctypes.CDLL("libcudart.so.13")
assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64 << 20)) == 0
print("ready", flush=True)
sys.stdin.read()
"""
PAUSES = f"""
import subprocess, sys
sys.path.insert(0, {str(SOURCE / "python")!r})
import spillway
def build():
    import ctypes
    assert ctypes.CDLL("libcudart.so.13").cudaMalloc(
        ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64 << 20)) == 0
allocate = build
build()
"""
MOVED = 'print(spillway.stats()["devices"][0]["spilled_bytes"] >= 64 << 20)'


def text_of(page):
    text = (SOURCE / page).read_text()
    return text.replace("\\-", "-") if page.endswith(".1") else text


def blocks(text):
    """(language, lines) of the code of a page; the language is None if the code is indented."""
    text = re.sub(r"(?m)\\\n\s*", "", text)
    for match in re.finditer(r"(?m)^```(\w+)\n((?:(?!```).*\n)*)|(?<=\n\n)((?: {4,}\S.*\n|\n)+)",
                             text):
        lines = map(str.rstrip if match[1] else str.strip, (match[2] or match[3]).splitlines())
        yield match[1], [line for line in lines if line]


def commands(page):
    """The lines of shell of a page, in their order."""
    text = text_of(page)
    if page.endswith(".1"):
        return re.findall(r"(?m)^    (spillway .*)", text)
    if page == "llms.txt":
        return re.findall(r"`(spillway [^`]*)`", " ".join(text.split()))
    return [line for language, lines in blocks(text) if language is None
            for line in lines if COMMANDS.match(line)]


def reason(line):
    """Why a line is not run, as its place in the list."""
    return next((number for number, (part, _) in enumerate(NOT_RUN) if re.search(part, line)),
                None)


def expected_status(line):
    # A check of a run without steps cannot tell the growth, and the program fits.
    return int("--max-growth" in line or "explain --fit" in line)


class Examples(harness.Case):
    def setUp(self):
        super().setUp()
        self.pid = None
        for name in "python", "torchrun", "jupyter":
            script = self.folder / name
            script.write_text(f"#!/bin/sh\nexec {PROGRAMS / 'fit'} take\n")
            script.chmod(0o755)
        for name in "train.py", "r-0.rec":
            (self.folder / name).touch()
        (self.folder / "build").symlink_to(harness.ROOT)

    def environment(self, line):
        simulated = re.search(r"spillway (sim|fit|advise)\b", line)
        env = harness.environment(False, not simulated)
        env["PATH"] = f"{self.folder}:{COMMAND.parent}:{env['PATH']}"
        env["XDG_CACHE_HOME"] = str(self.folder)
        return env

    def hold(self):
        """A process that can be paused."""
        process = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   env=harness.environment(CONTROL="on"))
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process.pid

    def flags(self, command):
        """The flags in the help of a command, which must have one."""
        short, full = (self.run_command([COMMAND, command, flag], harness.environment(False, False))
                       for flag in ("--help", "--help-all"))
        self.assertEqual(short.status, 0, command)
        return {"--help", *re.findall(r"--[a-z][\w-]*", short.stdout + full.stdout)}

    def run_line(self, line, status=0):
        done = self.run_command(["sh", "-c", line], self.environment(line))
        self.assertEqual(done.status, status, f"{line}\n{done.stdout}{done.stderr}")

    def run_page(self, page, lines):
        for line in BEFORE.get(page, ()):
            self.run_line(line)
        if page in POLICIES:
            rules = next(lines for language, lines in blocks(text_of(page)) if language == "json")
            (self.folder / POLICIES[page]).write_text("\n".join(rules))
        for line in lines:
            for part, instead in PLACES:
                line = line.replace(part, instead)
            if re.search(r"\b(4711|PID)\b", line):
                self.pid = self.pid or self.hold()
                line = re.sub(r"\b(4711|PID)\b", str(self.pid), line)
            self.run_line(line, expected_status(line))

    @unittest.skipIf(harness.SANITIZED, "sh is not built with the sanitizer")
    def test_lines_of_shell(self):
        ran = 0
        for page in PAGES:
            lines = [line for line in commands(page) if reason(line) is None]
            ran += len(lines)
            with self.subTest(page):
                self.run_page(page, lines)
            self.doCleanups()
            self.setUp()
        self.assertGreater(ran, 60)

    def test_reasons_are_needed(self):
        lines = [line for page in PAGES for line in commands(page)]
        used = {reason(line) for line in lines}
        self.assertEqual([NOT_RUN[number] for number in range(len(NOT_RUN)) if number not in used],
                         [])
        for page in {*BEFORE, *POLICIES}:
            self.assertTrue(commands(page), page)
        for part, _ in PLACES:
            self.assertTrue(any(part in line for line in lines), part)

    def test_no_line_is_overlooked(self):
        """All lines of a block are commands, or none is."""
        for page in PAGES:
            for language, lines in blocks(text_of(page)) if page.endswith(".md") else ():
                if language is None:
                    kinds = {bool(COMMANDS.match(line)) for line in lines}
                    self.assertEqual(len(kinds), 1, f"{page}: {lines}")

    def test_scripts_have_the_flags(self):
        """Of a script that is not run, the file and the flags exist."""
        for page in PAGES:
            for script, rest in (re.match(r"(scripts/\S+)(.*)", line).groups()
                                 for line in commands(page) if line.startswith("scripts/")):
                with self.subTest(f"{page}: {script}{rest}"):
                    text = (SOURCE / script).read_text()
                    for flag in re.findall(r"--[\w-]+", rest.partition("#")[0]):
                        self.assertIn(flag, text)

    def test_flags_in_sentences(self):
        """`spillway COMMAND --flag` in a sentence names a command and flags that exist."""
        known, missing = {}, []
        for page in PAGES:
            for command, rest in re.findall(r"`spillway ([a-z]+)\b([^`]*)`", text_of(page)):
                known[command] = known.get(command) or self.flags(command)
                missing += [f"{page}: {command} {flag}"
                            for flag in re.findall(r"--[a-z][\w-]*", rest.partition(" -- ")[0])
                            if flag not in known[command]]
        self.assertEqual(missing, [])
        self.assertGreater(len(known), 10)

    def test_rules(self):
        for page in PAGES:
            for language, lines in blocks(text_of(page)):
                text = "\n".join(lines)
                if language == "json" or language is None and text.startswith("{"):
                    rules = json.loads(text)
                    if "version" not in rules:
                        text = json.dumps({"version": 1, "rules": [rules]})
                    path = self.folder / "rules.json"
                    path.write_text(text)
                    done = self.run_command([COMMAND, "policy", "check", path],
                                            harness.environment(False, False))
                    self.assertEqual((done.status, done.stderr), (0, ""), page)

    def test_python(self):
        """The Python code about pauses moves memory."""
        (self.folder / "evaluate.py").touch()
        found = re.findall(r"\n\n((?:    .*\n|\n)+)", text_of("docs/guide/pausing.md"))
        examples = [textwrap.dedent(code) for code in found if "with spillway." in code]
        self.assertEqual(len(examples), 2)
        for code in examples:
            env = harness.environment(CONTROL="on")
            env["PATH"] = f"{self.folder}:{env['PATH']}"
            done = self.run_command([sys.executable, "-c", f"{PAUSES}{code}{MOVED}"], env)
            self.assertEqual(done.status, 0, f"{code}{done.stderr}")
            self.assertEqual(done.stdout.splitlines()[-1], "True", code)

    def test_other_code(self):
        """Each other block of code is on a page that another test names, which runs it."""
        for page in PAGES:
            languages = {language for language, _ in blocks(text_of(page))} - {None, "json"}
            self.assertEqual(page in ELSEWHERE, languages != set(), page)
            for test in ELSEWHERE.get(page, ()):
                self.assertIn(page.removesuffix("README.md"), (SOURCE / test).read_text())


if __name__ == "__main__":
    harness.main()
