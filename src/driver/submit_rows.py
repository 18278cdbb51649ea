#!/usr/bin/env python3
"""Rows of functions.def and submit.def, written from NVIDIA's cuda.h and cudaTypedefs.h.

    submit_rows.py INCLUDE                  print submit.def: every function that enqueues work
    submit_rows.py INCLUDE ANSWER,RETRY,BARRIER,MEMORY SYMBOL...
                                            print rows of these functions with these attributes
    submit_rows.py INCLUDE --check DEF...   name every function of cuda.h that enqueues work and has
                                            no row in these files, or one without the submit
                                            barrier; exit 1 if there is one

INCLUDE is the folder of cuda.h. A function enqueues work if it takes a stream, or has a variant for
per-thread streams, and is not one of the exceptions below. Nothing of the headers' text is kept but
names and prototypes.
"""
import os
import re
import subprocess
import sys
import textwrap

import functions

# Functions that take a stream, or have a per-thread-stream variant, and enqueue no work on memory.
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
# Take a stream, but have no barrier: their handlers see to it, or they enqueue nothing.
OTHER_ROWS = re.compile(r"cuMem(Alloc|Free)|cuGreenCtxStreamCreate|cuGraphInstantiate|"
                        r"cuStream(Create|Destroy|BeginCapture|EndCapture|Synchronize)")
# Several items in one call: after a failure some of them may be enqueued, so it is not repeated.
SEVERAL = re.compile(r"Batch|MultiDevice")
# Attribute `memory`, by the name without version and variant; "-" for all others.
MEMORY = {
    "KERNEL": re.compile(r"cuLaunch(Cooperative)?Kernel(Ex)?$"),
    "POINTERS": re.compile(r"cuMem(cpy(DtoH(Async)?|AtoD|DtoA)|set(D2)?D(8|16|32)(Async)?)$"),
    "COPY": re.compile(r"cuMemcpy(HtoD|DtoD|Peer)?(Async)?$"),
    "DESCRIPTOR": re.compile(r"cuMemcpy(2D(Unaligned)?|3D(Peer)?)(Async)?$"),
    "BATCH": re.compile(r"cuMemcpy(3D)?BatchAsync$"),
    "GRAPH": re.compile(r"cuGraphLaunch$"),
}
WIDTH = 100
HEADER = """\
/* The rows of functions.def whose functions enqueue work on a stream. submit_rows.py prints this
 * file from cuda.h: run it again when a new header brings new functions. */
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
    """Symbol -> (name asked of cuGetProcAddress, ABI number, suffix of the per-thread-stream
    variant)."""
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


def row(attributes, symbol, params, since):
    base, _, suffix = split(symbol)
    attributes = ", ".join(attributes)
    line = f"SPW_FN({symbol}, {base}, {since.get(symbol, 0)}, {2 if suffix else 0}, {attributes},"
    if len(line) > WIDTH:
        line = line.replace(f", {attributes}", f",\n       {attributes}")
    # A parameter stays on one line.
    body = ", ".join(param.replace(" ", "\0") for param in params or ["void"])
    lines = textwrap.wrap(f"({body}))", WIDTH, initial_indent=" " * 7,
                          subsequent_indent=" " * 8, break_long_words=False)
    return "\n".join([line, *lines]).replace("\0", " ")


def submitters(found):
    """Every function that enqueues work, each per-thread-stream variant behind the plain one."""
    excluded = set(" ".join(DOES_NOT_SUBMIT.values()).split())
    twins = {symbol[:-5] for symbol in found if split(symbol)[2]}
    for symbol, params in sorted(found.items()):
        plain = symbol[:-5] if split(symbol)[2] else symbol
        streamed = any(re.match(r"CUstream\b", param) for param in params)
        if plain in excluded:
            continue
        if streamed or plain in twins or symbol in ALSO_SUBMITS:
            yield symbol


def attributes_of(symbol):
    base = split(symbol)[0]
    memory = next((name for name, pattern in MEMORY.items() if pattern.match(base)), "-")
    return "DRIVER", "-" if SEVERAL.search(symbol) else "RETRY", "BARRIER", memory


def check(found, rows):
    """Complaints about functions that enqueue work and do not hold the submit barrier."""
    barrier = {row.symbol: row.barrier for row in rows if isinstance(row, functions.Function)}
    for symbol in submitters(found):
        if symbol not in barrier:
            yield f"{symbol}: takes a stream, but is neither a row nor known not to enqueue work"
        elif barrier[symbol] == "-" and not OTHER_ROWS.match(symbol):
            yield f"{symbol}: enqueues work, but its row has no submit barrier"


def main():
    include, *rest = sys.argv[1:]
    found = prototypes(include)
    if rest and rest[0] == "--check":
        complaints = list(check(found, functions.rows(*rest[1:])))
        for complaint in complaints:
            print(complaint)
        return 1 if complaints else 0
    since = versions(include, found)
    if rest:
        for symbol in rest[1:]:
            print(row(rest[0].split(","), symbol, found[symbol], since))
        return 0
    print(HEADER, end="")
    for symbol in submitters(found):
        if not OTHER_ROWS.match(symbol):
            print(row(attributes_of(symbol), symbol, found[symbol], since))
    return 0


if __name__ == "__main__":
    sys.exit(main())
