#!/usr/bin/env python3
"""Generate the functions of the runtime that only call the driver: the rows of forward.def.

    gen_forwards.py OUT_C -- CC [ARGS...]

CC preprocesses NVIDIA's headers and the tables of this folder, so the parameters are those of the
installed version. Each argument is cast to the type of the driver's parameter in the same place. A
device number or the address of a kernel becomes a handle, and a struct is copied or converted. If
the runtime's and the driver's parameter point to structs with separate declarations, the C compiler
compares the sizes of the structs.
"""
import re
import subprocess
import sys

SOURCE = """
#define CUDA_ENABLE_DEPRECATED
#include "sim/runtime/driver.h"
#include "sim/runtime/abi.h"
#define SIMRT_FUNCTION(name, version) @driver #name version
#define SIMRT_FUNCTION_PAIR(name, version, ptsz) @pair #name version
#include "sim/runtime/driver.def"
#define TEXT(...) #__VA_ARGS__
#define SIMRT_FORWARD(name, need, function, ...) @forward name need #function TEXT(__VA_ARGS__)
#include "sim/runtime/forward.def"
"""
STRUCTS = ("CUipcEventHandle", "CUipcMemHandle", "CUmemLocation")
# The functions that find the driver's handle for a device number or a kernel's address.
FINDERS = {"CUdevice": "simrt_device_handle", "CUcontext": "simrt_context_primary",
           "CUfunction": "simrt_function_find", "CUkernel": "simrt_kernel_find"}
# The functions that convert the runtime's struct to the driver's.
CONVERTERS = {"const struct cudaKernelNodeParams *": "simrt_kernel_params",
              "struct cudaGraphNodeParams *": "simrt_node_params"}


def parameters(text, pattern):
    """(type, name) of each parameter of the declaration whose name matches."""
    found = re.search(pattern + r"\s*\(([^;{}]*?)\)\s*(?:__attribute__[^;]*)?;", text)
    if found is None:
        sys.exit(f"gen_forwards: no declaration of {pattern}")
    listed = " ".join(found.group(1).split())
    return [re.fullmatch(r"(.*?)\s*(\w+)", parameter.strip()).groups()
            for parameter in listed.split(",") if listed != "void"]


def converted(own, name, driver):
    """For one parameter: the statements before the call, the argument, and the checks."""
    base = re.sub(r"_v\d+$", "", driver)
    if own == driver:
        return "", name, ""
    if base in FINDERS and own in ("int", "const void *"):
        return found(driver, f"{name}_handle", f"{FINDERS[base]}({name}, &{name}_handle)")
    if own in CONVERTERS:
        kind = driver.removeprefix("const ").rstrip(" *")
        before, argument, _ = found(kind, f"{name}_driver",
                                    f"{CONVERTERS[own]}({name}, &{name}_driver)")
        return before, "&" + argument, ""
    if base in STRUCTS:
        return (f"    {driver} {name}_struct;\n\n"
                f"    memcpy(&{name}_struct, &{name}, sizeof({name}_struct));\n",
                f"{name}_struct", same_size(own, driver))
    both = own.endswith("*") and driver.endswith("*") and "void" not in own + driver
    return "", f"({driver}){name}", same_size(own[:-1], driver[:-1]) if both else ""


def found(kind, name, call):
    return (f"    {kind} {name};\n    cudaError_t {name}_error = {call};\n\n"
            f"    if ({name}_error != cudaSuccess) {{\n        return {name}_error;\n    }}\n",
            name, "")


def same_size(own, driver):
    return f'_Static_assert(sizeof({own}) == sizeof({driver}), "{own.strip()}");\n'


def forward(text, name, need, function, last):
    pair, version = re.search(rf'@(driver|pair) "{function}" (\d+)', text).groups()
    own = parameters(text, rf"\b{name}")
    driver = parameters(text, rf"\bPFN_{function}_v{version}\)")
    parts = [converted(*mine, theirs) for mine, (theirs, _) in zip(own, driver)]
    if last == "CURRENT_CONTEXT":
        parts.append(found("CUcontext", "context", "simrt_context_current(&context)"))
    elif last:
        parts.append(("", last, ""))
    if len(parts) != len(driver) or len(own) > len(driver):
        sys.exit(f"gen_forwards: {name} and {function} have not the same number of parameters")
    before, arguments, checks = ("".join(part[0] for part in parts),
                                 ", ".join(part[1] for part in parts),
                                 "".join(part[2] for part in parts))
    listed = ", ".join(f"{kind} {name}" for kind, name in own) or "void"
    macro, variant = ("SIMRT_API_PTSZ", "[ptsz]") if pair == "pair" else ("SIMRT_API", "")
    return (f"{checks}{macro}({name}, SIMRT_{need}, ({listed}))\n"
            f"{{\n{before}    return simrt_error(simrt_driver.{function}{variant}({arguments}));\n"
            "}\n\n")


def main(argv):
    compiler = argv[argv.index("--") + 1:]
    text = subprocess.run([*compiler, "-E", "-P", "-x", "c", "-"], input=SOURCE, text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    rows = re.findall(r'@forward (\w+) (\w+) "(\w+)" "(\w*)"', text)
    with open(argv[1], "w") as out:
        out.write("/* Generated by gen_forwards.py from forward.def. */\n#include <string.h>\n\n"
                  '#include "sim/runtime/entry.h"\n#include "sim/runtime/graph_kernel.h"\n'
                  '#include "sim/runtime/library.h"\n\n')
        out.writelines(forward(text, *row) for row in rows)


if __name__ == "__main__":
    main(sys.argv)
