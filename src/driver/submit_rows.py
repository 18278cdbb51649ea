#!/usr/bin/env python3
"""Rows of functions.def and submit.def, written from NVIDIA's cuda.h and cudaTypedefs.h.

    submit_rows.py INCLUDE                    print submit.def: every function that enqueues work
    submit_rows.py INCLUDE KIND SYMBOL...     print rows of these functions
    submit_rows.py INCLUDE --check DEF...     name every function of cuda.h that takes a stream, or
                                              has a twin for per-thread streams, and is neither in
                                              these files nor below, or is there, but of a kind that
                                              does not pass the gate; exit 1 if there is one

INCLUDE is the folder of cuda.h. Nothing of the headers' text is kept but names and prototypes.
"""
import os
import re
import subprocess
import sys
import textwrap

# Functions that take a stream, or have a twin, and enqueue no work that touches memory.
DOES_NOT_SUBMIT = {
    "a stream's properties": """
        cuStreamGetPriority cuStreamGetFlags cuStreamGetId cuStreamGetCtx cuStreamGetCtx_v2
        cuStreamGetDevice cuStreamGetGreenCtx cuStreamCopyAttributes cuStreamGetAttribute
        cuStreamSetAttribute""",
    "order and waiting only": """
        cuStreamWaitEvent cuStreamQuery cuEventRecord cuEventRecordWithFlags""",
    "describes a capture": """
        cuStreamIsCapturing cuStreamGetCaptureInfo cuStreamGetCaptureInfo_v2
        cuStreamGetCaptureInfo_v3 cuStreamUpdateCaptureDependencies
        cuStreamUpdateCaptureDependencies_v2""",
    "orders other interfaces, touches no memory": """
        cuGraphicsMapResources cuGraphicsUnmapResources""",
    "32-bit addresses: no address of an arena fits": """
        cuMemcpyHtoD cuMemcpyDtoH cuMemcpyDtoD cuMemcpyDtoA cuMemcpyAtoD cuMemcpyHtoA cuMemcpyAtoH
        cuMemcpyAtoA cuMemcpyHtoAAsync cuMemcpyAtoHAsync cuMemcpy2D cuMemcpy2DUnaligned cuMemcpy3D
        cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync cuMemcpy2DAsync cuMemcpy3DAsync
        cuMemsetD8 cuMemsetD16 cuMemsetD32 cuMemsetD2D8 cuMemsetD2D16 cuMemsetD2D32""",
}
# Functions that enqueue work although their prototype does not show it.
ALSO_SUBMITS = ["cuLaunch", "cuLaunchGrid", "cuLaunchCooperativeKernelMultiDevice"]
# Several items in one call: after a failure some of them may be enqueued, so it is not repeated.
IN_PARTS = re.compile(r"Batch|MultiDevice")
# Take a stream and are rows of functions.def itself: they are served, or create something.
OTHER_ROWS = re.compile(r"cuMem(Alloc|Free)|cuGreenCtxStreamCreate|cuGraphInstantiate|"
                        r"cuStream(Create|Destroy|BeginCapture|EndCapture|Synchronize)")
# What they touch is in their arguments: by the layout of a kernel's parameters, or as addresses.
LAUNCHES = {"cuLaunchKernel": "LAUNCH", "cuLaunchKernelEx": "LAUNCH",
            "cuLaunchCooperativeKernel": "LAUNCH_PLAIN"}
TOUCHES = re.compile(r"cuMem(cpyDtoH(Async)?|set(D2)?D(8|16|32)(Async)?)$")
# The same, and what is copied may be addresses.
COPIES = {"COPY": re.compile(r"cuMemcpy(HtoD|DtoD)?(Async)?$"),
          "COPY_PEER": re.compile(r"cuMemcpyPeer(Async)?$"),
          "COPY_ROWS": re.compile(r"cuMemcpy(2D(Unaligned)?|3D(Peer)?)(Async)?$"),
          "COPY_PARTS": re.compile(r"cuMemcpyBatchAsync$"),
          "COPY_ROWS_PARTS": re.compile(r"cuMemcpy3DBatchAsync$")}
GATED = ("SUBMIT", "SUBMIT_PARTS", "LAUNCH", "LAUNCH_PLAIN", "TOUCH", *COPIES)
WIDTH = 100
HEADER = """\
/* The rows of functions.def whose functions enqueue work on a stream, printed by submit_rows.py
 * from cuda.h: run it again when a new header brings new ones. */
"""


def read(include, name, *defines):
    """The preprocessed text of one header."""
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-E", "-P", *defines, "-isystem", include, "-x", "c", "-"]
    text = f"#include <{name}>\n"
    return subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout


def prototypes(include):
    """Symbol -> list of parameters, for everything cuda.h declares under its exported name."""
    text = read(include, "cuda.h", "-D__CUDA_API_VERSION_INTERNAL")
    found = {}
    for symbol, params in re.findall(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(([^;{]*?)\)\s*;", text):
        found[symbol] = [] if params.strip() == "void" else [
            re.sub(r"\s+", " ", param).strip() for param in params.split(",")]
    return found


def split(symbol):
    """Symbol -> (name asked of cuGetProcAddress, ABI number, suffix of the twin)."""
    twin = re.search(r"_pt[sd][sz]$|_ptds$", symbol)
    suffix = twin.group(0) if twin else ""
    stem = symbol[:len(symbol) - len(suffix)]
    version = re.search(r"_v(\d+)$", stem)
    if version:
        return stem[:version.start()], int(version.group(1)), suffix
    return stem, 1, suffix


def versions(include, symbols):
    """Symbol -> the CUDA version that brought its ABI: the k-th ABI belongs to the k-th typedef."""
    path = os.path.join(include, "cudaTypedefs.h")
    with open(path, encoding="ascii", errors="replace") as header:
        text = header.read()
    since = {}
    for base, version, suffix in set(re.findall(r"PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds|)\)", text)):
        since.setdefault((base, suffix), []).append(int(version))
    abis = {}
    for symbol in symbols:
        base, number, suffix = split(symbol)
        abis.setdefault((base, suffix), []).append((number, symbol))
    result = {}
    for key, members in abis.items():
        numbers = sorted(since.get(key, []))
        # Where the header gives fewer versions than ABIs, they are those of the newest.
        for (_, symbol), version in zip(reversed(sorted(members)), reversed(numbers)):
            result[symbol] = version
    return result


def argument(param):
    """The name in one parameter's declaration."""
    return re.search(r"(\w+)(\[\w*\])?$", param).group(1)


def row(kind, symbol, params, since):
    base, _, suffix = split(symbol)
    inside = [argument(p) + "->hStream" for p in params if re.search(r"\bCUlaunchConfig\b", p)]
    stream = next((argument(p) for p in params if re.match(r"CUstream\b(?! ?\*)", p)),
                  *inside or ["NULL"])
    flags = 2 if suffix else 0
    head = f"SPW_FN({kind}, {symbol}, {base}, {since.get(symbol, 0)}, {flags}, {stream},"
    lines = [head] if len(head) <= WIDTH else textwrap.wrap(
        head, WIDTH, subsequent_indent=" " * 7)
    for items, tail in ((params or ["void"], "),"), ([argument(p) for p in params], "))")):
        # A parameter stays on one line.
        body = ", ".join(item.replace(" ", "\0") for item in items)
        lines += textwrap.wrap("(" + body + tail, WIDTH, initial_indent=" " * 7,
                               subsequent_indent=" " * 8, break_long_words=False)
    return "\n".join(lines).replace("\0", " ")


def submitters(found):
    """Every function that enqueues work, twins behind their plain form."""
    excluded = set(" ".join(DOES_NOT_SUBMIT.values()).split())
    twins = {symbol[:-5] for symbol in found if split(symbol)[2]}
    for symbol, params in sorted(found.items()):
        plain = symbol[:-5] if split(symbol)[2] else symbol
        streamed = any(re.match(r"CUstream\b", param) for param in params)
        if plain in excluded:
            continue
        if streamed or plain in twins or symbol in ALSO_SUBMITS:
            yield symbol


def kind_of(symbol):
    for kind, pattern in COPIES.items():
        if pattern.match(split(symbol)[0]):
            return kind
    if IN_PARTS.search(symbol):
        return "SUBMIT_PARTS"
    base = split(symbol)[0]
    return LAUNCHES.get(base, "TOUCH" if TOUCHES.match(base) else "SUBMIT")


def main():
    include, *rest = sys.argv[1:]
    found = prototypes(include)
    if rest and rest[0] == "--check":
        text = ""
        for name in rest[1:]:
            with open(name, encoding="ascii") as rows:
                text += rows.read()
        kinds = {symbol: kind for kind, symbol in re.findall(r"^SPW_FN\((\w+), (\w+)", text, re.M)}
        missing = [symbol for symbol in submitters(found) if symbol not in kinds]
        for symbol in missing:
            print(f"{symbol}: takes a stream, but is neither a row nor known not to submit work")
        ungated = [symbol for symbol in submitters(found) if not OTHER_ROWS.match(symbol) and
                   kinds.get(symbol, "SUBMIT") not in GATED]
        for symbol in ungated:
            print(f"{symbol}: submits work, but does not pass the gate: its row is of another kind")
        return 1 if missing or ungated else 0
    since = versions(include, found)
    if rest:
        for symbol in rest[1:]:
            print(row(rest[0], symbol, found[symbol], since))
        return 0
    print(HEADER, end="")
    for symbol in submitters(found):
        if not OTHER_ROWS.match(symbol):
            print(row(kind_of(symbol), symbol, found[symbol], since))
    return 0


if __name__ == "__main__":
    sys.exit(main())
