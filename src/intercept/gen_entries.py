#!/usr/bin/env python3
"""Write the exported functions of libspillway.so ("entries"), one for each row of functions.def.

    gen_entries.py FUNCTIONS_C SUBMIT_C FUNCTIONS_DEF SUBMIT_DEF

functions.def explains the attributes. The table of all entries stands in FUNCTIONS_C.
"""
import os
import re
import sys
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "driver"))
import functions  # noqa: E402

WIDTH = 100

HEAD = """\
/* Exported functions. Written by gen_entries.py from the list: do not edit. */
#include "driver/register_api.h"
#include "driver/runtime_api.h"
#include "intercept/entry.h"
#include "intercept/library.h"
#include "intercept/resolve.h"
#include "intercept/runtime.h"
#include "intercept/submit.h"
#include "migrate/move/barrier.h"
#include "program/stream.h"
#include "serve/captures.h"
#include "serve/handlers.h"
#include "serve/immovable.h"
#include "submit/arguments.h"
#include "call/arrival.h"
#include "submit/batch.h"
#include "graph/graph.h"
#include "submit/indirect.h"
#include "device/lease.h"
#include "submit/parts.h"
#include "process/process.h"
#include "submit/rows.h"
#include "submit/tensor_map.h"
#include "device/spill.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
"""

TABLE = """\
void (*const spw_intercept_entry_table[SPW_FN_COUNT])(void) = {
#define SPW_EACH(symbol) (void (*)(void))symbol,
#include "driver/functions.def"
};
"""

HANDLER_ALWAYS = """\
    return spw_serve_{call};
"""

HANDLER = """\
    CUresult result;

    if (!spw_process_enter(__builtin_return_address(0))) {{
        return spw_process_driver()->{call};
    }}
    spw_device_lease_enter();
    result = spw_serve_{call};
    spw_device_lease_leave();
    return spw_intercept_end(result);
"""

# A handler that consists of the real function and the steps around it.
AROUND = """\
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    if (!spw_process_enter(__builtin_return_address(0))) {{
        return driver->{call};
    }}
    spw_device_lease_enter();
    {steps}
    spw_device_lease_leave();
    return spw_intercept_end(result);
"""

# The steps before and after the call, by the last attribute of the row.
STEPS = {
    "GRAPH_MADE": (
        "spw_graph_instantiate_begin();",
        "spw_graph_instantiate_end("
        "result == CUDA_SUCCESS ? {executable} : NULL, hGraph, {from_device});"),
    # Noted before the call: from then on the graph may depend on the places of blocks.
    "GRAPH_CHANGED": ("spw_graph_changed(hGraphExec);", ""),
    "CAPTURE_BEGUN": (
        "const uint64_t id = "
        "spw_serve_capture_begin(hStream, /* per_thread */ {per_thread}, {mode});",
        "spw_serve_capture_begun(id, result);"),
    "CAPTURE_ENDED": (
        "", "spw_serve_capture_ended(hStream, /* per_thread */ {per_thread}, phGraph, result);"),
    # The look-up includes the context in the fences of its device.
    "CONTEXT_MADE": ("", """\
if (result == CUDA_SUCCESS) {{
    (void)spw_program_stream_current();
}}"""),
    "TENSOR_MAP": ("", """\
if (result == CUDA_SUCCESS) {{
    spw_submit_tensor_map_add(tensorMap, (uint64_t)(uintptr_t)globalAddress);
}}"""),
    # The layouts of the kernels' parameters: the driver may give the kernels' handles to others.
    # Before the call, so that another thread that gets such a handle finds no layout, and after it,
    # for layouts that were read during the call.
    "CODE_UNLOADED": ("spw_submit_arguments_forget_layouts();",
                      "spw_submit_arguments_forget_layouts();"),
}

HANDLER_OF_CALL = """\
    struct spw_call call;
    CUresult result;

    if (!spw_call_begin(__builtin_return_address(0))) {{
        return spw_process_driver()->{call};
    }}
    {where}
    result = spw_serve_{symbol}(&call, {arguments});
    spw_call_end();
    return spw_intercept_end(result);
"""

FORWARD = """\
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    {forward}
    return spw_intercept_end(result);
"""

SUBMIT = """\
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    if (!spw_intercept_commit("{symbol}")) {{
        return CUDA_ERROR_OUT_OF_MEMORY;
    }}
    spw_migrate_barrier_acquire();
    spw_submit_arguments_note_anything();
    {forward}
    spw_migrate_barrier_release();
    return spw_intercept_end(result);
"""

# Parts of the copies may be enqueued when the call fails, so their use is not reported.
SUBMIT_BATCH = """\
    struct spw_driver *driver = spw_process_driver();
    CUresult result;

    if (!spw_intercept_commit("{symbol}")) {{
        return CUDA_ERROR_OUT_OF_MEMORY;
    }}
    if (spw_submit_arguments_wanted()) {{
        spw_device_lease_enter();
        {look}
        spw_device_lease_leave();
    }}
    spw_migrate_barrier_acquire();
    spw_submit_arguments_note_anything();
    {forward}
    spw_migrate_barrier_release();
    return spw_intercept_end(result);
"""

# `uses` is NULL unless the uses of memory are recorded.
SUBMIT_GRAPH = """\
    struct spw_driver *driver = spw_process_driver();
    struct spw_graph_uses *uses = NULL;
    CUresult result;

    if (!spw_intercept_commit("{symbol}")) {{
        return CUDA_ERROR_OUT_OF_MEMORY;
    }}
    if (spw_submit_parts_wanted()) {{
        spw_graph_note_users({graph}, {stream}, /* per_thread */ {per_thread});
    }}
    if (spw_submit_arguments_wanted()) {{
        spw_device_lease_enter();
        uses = spw_graph_expect({graph}, {stream}, /* per_thread */ {per_thread});
        spw_device_lease_leave();
    }}
    spw_migrate_barrier_acquire();
    if (SPW_UNLIKELY(uses != NULL)) {{
        spw_device_lease_enter();
        spw_graph_note(uses);
        spw_device_lease_leave();
    }} else {{
        spw_submit_arguments_note_anything();
    }}
    {forward}
    spw_migrate_barrier_release();
    return spw_intercept_end(result);
"""

SUBMIT_REPORT = """\
    struct spw_driver *driver = spw_process_driver();
    bool wanted = spw_submit_arguments_wanted();
    struct spw_arguments use;
    CUresult result;

    if (!spw_intercept_commit("{symbol}")) {{
        return CUDA_ERROR_OUT_OF_MEMORY;
    }}
    if (SPW_UNLIKELY(wanted)) {{
        spw_device_lease_enter();
        {look}
        spw_submit_arguments_expect(&use, {stream}, /* per_thread */ {per_thread});
        spw_device_lease_leave();
    }}
    spw_migrate_barrier_acquire();
    if (SPW_UNLIKELY(wanted)) {{
        spw_device_lease_enter();
        spw_submit_arguments_note(&use);
        spw_device_lease_leave();
    }}
    {forward}
    spw_migrate_barrier_release();
    return spw_intercept_end(result);
"""

# The call for each part of a copy or fill: a function of its own, beside the entry.
PARTS = """\
static CUresult {symbol}_in_parts({params})
{{
    struct spw_driver *driver = spw_process_driver();
    struct spw_parts parts;
    CUresult result = CUDA_SUCCESS;

    {begin}
    while (spw_submit_parts_next(&parts, result)) {{
        {call}
    }}
    return result;
}}

"""

# The call for a batch of copies in which some are split.
BATCH_IN_PARTS = """\
static CUresult {symbol}_in_parts({params})
{{
    const struct {type} whole = {{{members}}};
    struct spw_driver *driver = spw_process_driver();
    size_t failed = SIZE_MAX;
    struct {type} split;
    CUresult result;

    spw_submit_batch_note{suffix}(&whole, {stream}, /* per_thread */ {per_thread});
    if (!spw_submit_batch_split{suffix}(&whole, &split)) {{
        return driver->{symbol}({arguments});
    }}
    result = driver->{symbol}({changed});
    failed = spw_submit_batch_end{suffix}(&split, failed);
    {tell}
    return result;
}}

"""
BATCH_TELL = """\
if (failIdx != NULL && failed != SIZE_MAX) {
    *failIdx = failed;
}"""

# Such a call with a descriptor of the copy.
PARTS_BEGIN_ROWS = """\
if (pCopy == NULL) {{
    return driver->{call};
}}
spw_submit_parts_box(&parts, spw_submit_rows_{kind}(pCopy));"""
PARTS_CALL_ROWS = """\
{type} part = *pCopy;

spw_submit_rows_cut_{kind}(&part, &parts.cut.part);
{call}"""

# Such a call is looked at as a whole.
LOOK_AT_ROWS = """\
spw_submit_arguments_anything(&use);
if (pCopy != NULL) {{
    spw_submit_indirect_copy_box(spw_submit_rows_{kind}(pCopy));
}}"""

PARTS_NOTE = """
spw_submit_parts_note(&parts, {stream}, /* per_thread */ {per_thread});"""

# Of a copy that may be between devices: the search, and the call when it must be a peer copy.
PARTS_FIND_PEER = """
spw_submit_parts_find_peer(&parts, {stream}, /* per_thread */ {per_thread});"""
PARTS_CALL_PEER = """\
if (SPW_UNLIKELY(parts.is_peer)) {{
    {peer}
}} else {{
    {call}
}}"""
PARTS_CALL_PEER_ROWS = """\
const CUDA_MEMCPY3D_PEER peer = spw_submit_rows_peer_of_{kind}(&part, &parts.peer);

result = driver->{symbol}({arguments});"""

RUNTIME = """\
    const void *caller = __builtin_return_address(0);
    void *found = spw_intercept_library_function(SPW_FN_{symbol}, caller);
    __typeof__({symbol}) *real = (__typeof__({symbol}) *)(uintptr_t)found;
    struct spw_runtime_call call;
    cudaError_t result;

    if (real == NULL) {{
        return cudaErrorSharedObjectSymbolNotFound;
    }}
    spw_intercept_runtime_begin(&call, SPW_FN_{symbol}, caller, __builtin_frame_address(0), found);
    result = real({arguments});
    {end}
    return result;
"""

END = "(void)spw_intercept_runtime_end(&call);"

END_ALLOCATES = """\
if (!spw_intercept_runtime_end(&call) && result == cudaSuccess && *{address} != NULL) {{
    spw_intercept_runtime_count_missed();
}}"""

END_RESOLVES = """\
(void)spw_intercept_runtime_end(&call);
if (result == cudaSuccess && {address} != NULL && *{address} != NULL) {{
    *{address} = spw_intercept_resolve(*{address}, {name});
}}"""

REGISTER = """\
    void *found = spw_intercept_library_function(SPW_FN_{symbol}, __builtin_return_address(0));
    __typeof__({symbol}) *real = (__typeof__({symbol}) *)(uintptr_t)found;
    struct spw_library_call outer;
    {result}{space}result;

    if (real == NULL) {{
        return {absent};
    }}
    spw_serve_immovable_mark((CUdeviceptr)(uintptr_t)({address}), {bytes});
    outer = spw_intercept_library_begin(SPW_FN_{symbol}, found);
    result = real({arguments});
    spw_intercept_library_end(outer);
    return result;
"""

# The last part of the names of the functions for a copy of rows, by the type of its descriptor.
ROWS = {"CUDA_MEMCPY2D": "2d", "CUDA_MEMCPY3D": "3d", "CUDA_MEMCPY3D_PEER": "3d_peer"}
# Bytes of an element, by the type of the value of a fill.
ELEMENT = {"unsigned char": 1, "unsigned short": 2, "unsigned int": 4}


def arguments(row):
    return ", ".join(functions.name_of(param) for param in row.params)


def indent(text, columns):
    """The lines behind the first one, moved to the right."""
    return re.sub(r"\n(?!\n)", "\n" + " " * columns, text)


def stream_of(row):
    for param in row.params:
        if functions.type_of(param) == "CUstream":
            return functions.name_of(param)
        if functions.type_of(param) == "const CUlaunchConfig *":
            return functions.name_of(param) + "->hStream"
    return "NULL"


def as_word(param):
    """The address in a parameter as a number."""
    name = functions.name_of(param)
    return f"(uint64_t)(uintptr_t){name}" if "*" in param else name


def look_at_pointers(row):
    lines = ["spw_submit_arguments_touch(&use);"]
    lines += [f"spw_submit_arguments_add(&use, {functions.name_of(param)});"
              for param in row.params if functions.type_of(param) == "CUdeviceptr"]
    return "\n".join(lines)


def look_at_copy(row):
    to, source = [as_word(param) for param in row.params
                  if functions.type_of(param) == "CUdeviceptr" or "*" in param][:2]
    return f"{look_at_pointers(row)}\nspw_submit_indirect_copy({to}, {source}, ByteCount);"


def type_of_rows(row):
    """The type of the descriptor of a copy of rows."""
    return next(functions.type_of(param).removeprefix("const ").removesuffix(" *")
                for param in row.params if functions.name_of(param) == "pCopy")


def is_fill(row):
    return row.symbol.startswith("cuMemset")


def per_thread(row):
    return "true" if row.flags == "2" else "false"


def may_be_peer(row):
    """True for a plain copy whose two ends may both be on devices."""
    ends = [param for param in row.params if functions.type_of(param) == "CUdeviceptr"]
    return "Peer" not in row.symbol and (
        row.memory == "DESCRIPTOR" or row.memory == "COPY" and len(ends) == 2)


def peer_symbol(row, base):
    """The peer copy that waits, and uses the thread's stream, if the plain copy `row` does."""
    synchronous = stream_of(row) == "NULL"
    return (base + ("" if synchronous else "Async") +
            (("_ptds" if synchronous else "_ptsz") if row.flags == "2" else ""))


def arguments_of_part(row):
    """The arguments for the current part of a copy or fill of one row, or of a fill of rows."""
    words = {"ByteCount": "spw_submit_parts_count(&parts)",
             "N": "spw_submit_parts_count(&parts)",
             "Width": "spw_submit_parts_count(&parts)",
             "Height": "parts.cut.part.height"}
    found = []
    for param in row.params:
        name, kind = functions.name_of(param), functions.type_of(param)
        if name in words:
            found.append(words[name])
        elif kind == "CUdeviceptr" and is_fill(row):
            found.append(f"spw_submit_parts_element(&parts, {name})")
        elif kind == "CUdeviceptr" or name.endswith("Offset"):
            found.append(f"{name} + spw_submit_parts_at(&parts)")
        elif "*" in param:
            found.append(f"({kind.replace('void', 'char')}){name} + spw_submit_parts_at(&parts)")
        else:
            found.append(name)
    return found


def call_of_part(row):
    words = arguments_of_part(row)
    call = f"result = driver->{row.symbol}({', '.join(words)});"
    if not may_be_peer(row):
        return call
    to, source, *rest = words
    words = ", ".join([to, "parts.peer.to", source, "parts.peer.from", *rest])
    peer = f"result = driver->{peer_symbol(row, 'cuMemcpyPeer')}({words});"
    return PARTS_CALL_PEER.format(peer=peer, call=call)


def call_of_rows(row):
    call = f"result = driver->{row.symbol}({arguments(row).replace('pCopy', '&part')});"
    kind = ROWS[type_of_rows(row)]
    if may_be_peer(row):
        peer = PARTS_CALL_PEER_ROWS.format(
            kind=kind, symbol=peer_symbol(row, "cuMemcpy3DPeer"),
            arguments=arguments(row).replace("pCopy", "&peer"))
        call = PARTS_CALL_PEER.format(peer=indent(peer, 4), call=call)
    return PARTS_CALL_ROWS.format(type=type_of_rows(row), kind=kind, call=call)


def begin_parts(row):
    names = [functions.name_of(param) for param in row.params]
    if row.memory == "DESCRIPTOR":
        return PARTS_BEGIN_ROWS.format(kind=ROWS[type_of_rows(row)],
                                       call=f"{row.symbol}({arguments(row)})")
    if is_fill(row):
        unit = next(ELEMENT[functions.type_of(param)] for param in row.params
                    if functions.type_of(param) in ELEMENT)
        rows = "dstPitch, {}, Width, Height" if "dstPitch" in names else "0, {}, N, 1"
        return f"spw_submit_parts_fill(&parts, {names[0]}, {rows.format(unit)});"
    ends = [as_word(param) for param in row.params
            if functions.type_of(param) == "CUdeviceptr" or "*" in param]
    return f"spw_submit_parts_copy(&parts, {', '.join([*ends, '0'][:2])}, ByteCount);"


def is_split(row):
    return row.memory in ("POINTERS", "COPY", "DESCRIPTOR", "BATCH")


# What changes in the arguments of a batch that is split, by their names; of both kinds.
CHANGED = {"dsts": "split.to", "srcs": "split.from", "sizes": "split.bytes", "count": "split.count",
           "attrsIdxs": "split.firsts", "opList": "split.copies", "numOps": "split.count",
           "failIdx": "failIdx != NULL ? &failed : NULL"}


def batch_in_parts(row):
    names = [functions.name_of(param) for param in row.params]
    suffix, members = "_3d", ".copies = opList, .count = numOps"
    if "opList" not in names:
        suffix = ""
        members = (".to = dsts, .from = srcs, .bytes = sizes, .count = count, "
                   ".firsts = attrsIdxs, .attributes = numAttrs")
    return BATCH_IN_PARTS.format(
        symbol=row.symbol, params=", ".join(row.params), type="spw_batch" + suffix, suffix=suffix,
        stream=stream_of(row), per_thread=per_thread(row),
        members=members, arguments=arguments(row),
        changed=", ".join(CHANGED.get(name, name) for name in names),
        tell=indent(BATCH_TELL, 4) if "failIdx" in names else "(void)failed;")


def parts(row):
    """The function that makes the call in parts; empty if it is never split."""
    if not is_split(row):
        return ""
    if row.memory == "BATCH":
        return batch_in_parts(row)
    begin = begin_parts(row)
    begin += PARTS_NOTE.format(stream=stream_of(row), per_thread=per_thread(row))
    if may_be_peer(row):
        begin += PARTS_FIND_PEER.format(stream=stream_of(row), per_thread=per_thread(row))
    call = call_of_rows(row) if row.memory == "DESCRIPTOR" else call_of_part(row)
    return PARTS.format(symbol=row.symbol, params=", ".join(row.params),
                        begin=indent(begin, 4), call=indent(call, 8))


def look(row):
    """The statements that fill in `use`, or look at a batch."""
    names = [functions.name_of(param) for param in row.params]
    if row.memory == "KERNEL":
        extra = "extra" if "extra" in names else "/* extra */ NULL"
        return f"spw_submit_arguments_launch(&use, f, kernelParams, {extra});"
    if row.memory == "DESCRIPTOR":
        return LOOK_AT_ROWS.format(kind=ROWS[type_of_rows(row)])
    if row.memory == "BATCH":
        return ("spw_submit_indirect_copy_3d_batch(opList, numOps);" if "opList" in names else
                "spw_submit_indirect_copy_batch(dsts, srcs, sizes, count);")
    return look_at_copy(row) if row.memory == "COPY" else look_at_pointers(row)


def where(row):
    """The statement that finds out where a call works."""
    on = f", {stream_of(row)}, /* per_thread */ {per_thread(row)}"
    if row.answer == "ON_STREAM":
        return f"spw_call_on_stream(&call{on});"
    if row.answer == "IN_CONTEXT":
        return "spw_call_in_context(&call);"
    block = functions.name_of(row.params[0])
    if stream_of(row) == "NULL":
        return f"spw_call_of_block(&call, {block});"
    return f"spw_call_of_block_on(&call, {block}{on});"


def from_device(names):
    """The condition that kernels can launch an executable graph that is made."""
    flag = "CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH"
    if "flags" in names:
        return f"(flags & {flag}) != 0"
    params = "instantiateParams"
    return f"{params} != NULL && ({params}->flags & {flag}) != 0" if params in names else "false"


def around_entry(row, call, forward):
    names = [functions.name_of(param) for param in row.params]
    if row.memory not in STEPS:
        sys.exit(f"{row.symbol}: no such attribute: {row.memory}")
    before, after = (step.format(
        executable="hGraphExec" if "hGraphExec" in names else "*phGraphExec",
        from_device=from_device(names), per_thread=per_thread(row),
        mode="mode" if "mode" in names else "CU_STREAM_CAPTURE_MODE_GLOBAL")
        for step in STEPS[row.memory])
    steps = "\n".join(filter(None, (before, forward, after)))
    return AROUND.format(call=call, steps=indent(steps, 4))


def function_entry(row):
    call = f"{row.symbol}({arguments(row)})"
    made = f"driver->{call}"
    if is_split(row):
        made = f"spw_submit_parts_wanted() ? {row.symbol}_in_parts({arguments(row)}) : {made}"
    forward = f"SPW_FORWARD(result, {made});" if row.retry == "RETRY" else f"result = {made};"
    if row.answer == "HANDLER_ALWAYS":
        body = HANDLER_ALWAYS
    elif row.answer == "AROUND":
        return "CUresult CUDAAPI ", around_entry(row, call, forward)
    elif row.answer == "HANDLER":
        body = HANDLER
    elif row.answer in functions.CALLS:
        body = HANDLER_OF_CALL
    elif row.barrier == "-":
        body = FORWARD
    elif row.memory == "-":
        body = SUBMIT
    elif row.memory == "BATCH":
        body = SUBMIT_BATCH
    elif row.memory == "GRAPH":
        body = SUBMIT_GRAPH
    else:
        body = SUBMIT_REPORT
    return "CUresult CUDAAPI ", body.format(
        symbol=row.symbol, call=call, arguments=arguments(row), forward=forward,
        where=where(row) if row.answer in functions.CALLS else "", stream=stream_of(row),
        per_thread=per_thread(row), graph=functions.name_of(row.params[0]) if row.params else "",
        look=indent(look(row), 8) if row.memory not in ("-", "GRAPH") else "")


def runtime_entry(row):
    names = [functions.name_of(param) for param in row.params]
    end = END
    if row.after == "ALLOCATES":
        end = END_ALLOCATES.format(address=names[0])
    elif row.after == "RESOLVES":
        end = END_RESOLVES.format(name=names[0], address=names[1])
    return "cudaError_t CUDARTAPI ", RUNTIME.format(
        symbol=row.symbol, arguments=arguments(row), end=indent(end, 4))


def register_entry(row):
    space = "" if row.result.endswith("*") else " "
    return row.result + space, REGISTER.format(
        **row._asdict(), space=space, arguments=arguments(row))


ENTRY = {functions.Function: function_entry, functions.Runtime: runtime_entry,
         functions.Register: register_entry}


def wrap(line):
    """A line that is too long is broken behind commas."""
    if len(line) <= WIDTH:
        return line
    begin = " " * (len(line) - len(line.lstrip()))
    glued = re.sub(r"(?<!,) ", "\0", line.strip())
    lines = textwrap.wrap(glued, WIDTH, initial_indent=begin, subsequent_indent=begin + "    ",
                          break_long_words=False)
    return "\n".join(lines).replace("\0", " ")


def entry(row):
    result, body = ENTRY[type(row)](row)
    head = f"SPW_EXPORT {result}{row.symbol}({', '.join(row.params) or 'void'})"
    before = parts(row).splitlines() if isinstance(row, functions.Function) else []
    return "\n".join(map(wrap, [*before, head, "{", *body.splitlines(), "}"]))


def main():
    functions_c, submit_c, functions_def, submit_def = sys.argv[1:]
    for path, rows, tail in ((functions_c, functions_def, [TABLE]), (submit_c, submit_def, [])):
        entries = [entry(row) + "\n" for row in functions.rows(rows)]
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join([HEAD, *entries, *tail]))


if __name__ == "__main__":
    main()
