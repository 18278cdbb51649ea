#!/usr/bin/env python3
"""Builds a fuzz target with clang's libFuzzer and the sanitizers, and runs it from its corpus.

    fuzz.py TARGET SECONDS [--keep]

Fails when the target does, and prints the input as a line of the corpus. --keep replaces the corpus
by the smallest set of inputs that reaches as much of the code."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HERE = SOURCE / "tests/fuzz"
# What each target is made of, besides fuzz_TARGET.c, and what it links.
TARGETS = {
    "fatbin": (["src/sim/driver/code/*.c"], []),
    "functor": (["src/sim/pytorch/cxx_text.c", "src/sim/pytorch/functor.c",
                 "src/sim/pytorch/value.c"], ["-lm"]),
    "policy": (["src/policy/*.c", "src/common/nearest.c", "src/common/size.c",
                "src/common/utf8.c", "src/callsite/text.c"], ["-lcjson"]),
    "process_sites": (["src/cli/inspect/call_sites.c", "src/cli/inspect/libraries.c",
                       "src/callsite/*.c", "src/common/*.c", "src/system/*.c"], ["-ldl"]),
    "process_stats": (["src/stats/*.c", "src/common/*.c", "src/system/*.c"], ["-ldl"]),
    "recording": (["src/cli/recording/blocks.c", "src/cli/recording/events.c",
                   "src/cli/recording/marks.c",
                   "src/cli/recording/sites.c", "src/cli/recording/state.c",
                   "src/cli/recording/zstd.c", "src/cli/inspect/call_sites.c",
                   "src/cli/inspect/libraries.c", "src/record/checksum.c", "src/callsite/*.c",
                   "src/common/*.c", "src/system/*.c"], ["-ldl"]),
    "site_frames": (["src/callsite/*.c", "src/common/*.c", "src/system/*.c"], ["-ldl"]),
    "site_text": (["src/callsite/text.c", "src/common/nearest.c", "src/common/size.c",
                   "src/common/utf8.c"], []),
}
COLUMNS = 98


def encode(data):
    """An input as lines of a corpus file (replay.c)."""
    text = "".join("\\\\" if byte == 0x5c else chr(byte) if 0x20 <= byte < 0x7f else
                   f"\\x{byte:02x}" for byte in data)
    text = re.sub("^#|^ | $", lambda found: f"\\x{ord(found[0]):02x}", text)
    pieces, line = re.findall(r"\\x..|\\\\|.", text), ""
    lines = []
    for piece in pieces:
        if len(line) + len(piece) > COLUMNS:
            if line[-1] == " ":
                line, piece = line[:-1], "\\x20" + piece
            lines.append(line + "\\")
            line = ""
        line += piece
    return "\n".join([*lines, line]) + "\n"


def decode(text):
    """The inputs of a corpus file."""
    data = b""
    for line in re.sub(r"^#.*\n", "", text, flags=re.M).splitlines():
        pieces = re.findall(r"\\x..|\\\\|.", line)
        for piece in pieces:
            if piece[0] != "\\" or len(piece) == 1:
                data += piece.encode() if piece != "\\" else b""
            else:
                data += b"\\" if piece == "\\\\" else bytes.fromhex(piece[2:])
        if not pieces or pieces[-1] != "\\":
            yield data
            data = b""


def build(target, folder):
    patterns, libraries = TARGETS[target]
    sources = [path for pattern in patterns for path in sorted(SOURCE.glob(pattern))]
    program = folder / "fuzz"
    subprocess.run(["clang", "-g", "-O1", "-std=gnu17", "-D_GNU_SOURCE",
                    "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all",
                    "-I", SOURCE / "src", HERE / f"fuzz_{target}.c", *sources, "-o", program,
                    *libraries], check=True)
    return program


def run(program, inputs, seconds):
    """Whether the target survived; what it died of is printed."""
    done = subprocess.run([program, f"-max_total_time={seconds}", "-max_len=4096", "-timeout=10",
                           "-rss_limit_mb=2048", "-print_final_stats=1",
                           f"-artifact_prefix={program.parent}/bad-", inputs],
                          capture_output=True, text=True, errors="replace")
    print("\n".join(done.stderr.splitlines()[-40 if done.returncode else -12:]))
    for path in program.parent.glob("bad-*"):
        print(f"{path.name}:\n{encode(path.read_bytes())}")
    return done.returncode == 0


def keep(program, inputs, corpus):
    least = program.parent / "least"
    least.mkdir()
    subprocess.run([program, "-merge=1", "-use_counters=0", "-max_len=4096", least, inputs],
                   check=True, capture_output=True)
    data = sorted({path.read_bytes() for path in least.iterdir()} - {b""},
                  key=lambda content: (len(content), content))
    comment = [line + "\n" for line in corpus.read_text().splitlines() if line.startswith("#")]
    corpus.write_text("".join(comment) + "".join(map(encode, data)))


def main():
    target, seconds = sys.argv[1], int(sys.argv[2])
    if not shutil.which("clang"):
        print("no clang")
        return 77
    corpus = HERE / f"corpus/{target}.txt"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        inputs = folder / "inputs"
        inputs.mkdir()
        for number, data in enumerate(decode(corpus.read_text())):
            (inputs / f"{number}").write_bytes(data)
        program = build(target, folder)
        survived = run(program, inputs, seconds)
        if survived and "--keep" in sys.argv:
            keep(program, inputs, corpus)
    return 0 if survived else 1


if __name__ == "__main__":
    sys.exit(main())
