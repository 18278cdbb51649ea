/* How the simulated GPU knew the layout of a kernel's arguments. The value is written to the record
 * of a run, which the command reads. New values may therefore only be appended. */
#pragma once

enum spw_layout {
    SPW_LAYOUT_UNKNOWN, /* unknown: addresses in the arguments were not checked */
    SPW_LAYOUT_BUILTIN, /* a built-in kernel; the extents that it accesses are also known */
    SPW_LAYOUT_PTX,     /* from PTX: every 64-bit parameter may be an address */
    SPW_LAYOUT_NAME,    /* from the C++ types in the kernel's name: pointers, no struct members */
    SPW_LAYOUT_CODE,    /* from the kernel's machine code, and from its name if that is C++ */
    SPW_LAYOUT_STRUCTS, /* as CODE, but addresses can only be in structs, which are not checked */
    SPW_LAYOUT_COUNT
};
