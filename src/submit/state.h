/* The memory that submitted calls use: arguments of kernels, ends of copies. It does not know the
 * handlers of calls.
 *
 *   arguments     finds the memory that a kernel uses by the addresses in its arguments
 *   batch         batches of copies, split where memory changes its kind
 *   cut           cuts a copy into parts, each in one kind of memory; geometry alone
 *   indirect      memory that holds addresses which kernels may read and use
 *   kernel_name   kernels that may read addresses from memory, by their names
 *   parts         copies and fills that the driver may not do in one part
 *   rows          copies of rows and volumes, as boxes for cut
 *   state         the tables of kernels and of memory that holds addresses
 *   tensor_map    the address in each tensor map
 *   use           reports the memory that a call uses to host tiers and recording
 *
 * All zero bytes of a table is the state before the start.
 *
 * The comment of a table names the lock that guards it. Atomic members may be used without the
 * lock. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/spans.h"

enum {
    SPW_LAYOUTS = 1 << 14,      /* most kernels known, in all generations */
    SPW_LAYOUT_SIZES = 1 << 18, /* most parameters of these kernels */
};

/* The parameters of one kernel. */
struct spw_layout {
    _Atomic uintptr_t function; /* 0: the entry is free; set last */
    uint32_t generation;
    uint32_t first; /* index of the first size */
    uint32_t count;
    bool known;  /* the driver gave the layout */
    bool direct; /* its name shows no sign of reading addresses from memory */
};

/* The parameter layouts of kernels. Guarded by spw_locks.layouts. Both arrays only grow, so a
 * layout can be read without the lock. */
struct spw_layouts {
    _Atomic uint32_t generation; /* rises when code is unloaded: older layouts are not found */
    struct spw_layout layouts[SPW_LAYOUTS];
    uint16_t sizes[SPW_LAYOUT_SIZES];
    uint32_t used;
};

/* Memory that holds addresses. Guarded by spw_locks.indirect. */
struct spw_indirect {
    struct spw_spans holders; /* blocks of ours that hold addresses */
    struct spw_spans mapped;  /* page-locked and managed memory */
    _Atomic size_t holder_count;
    _Atomic uint64_t mapped_begin; /* begin of the range that contains all memory mapped so far */
    _Atomic uint64_t mapped_end;   /* end of that range; 0: no memory was mapped */
    _Atomic bool everywhere;       /* addresses are in a place where every launch may find them */
};

enum {
    SPW_TENSOR_MAPS = 4096,
    SPW_TENSOR_MAP_BYTES = 128,
    SPW_TENSOR_MAP_ALIGN = 64, /* alignment of CUtensorMap */
    SPW_TENSOR_MAP_WORDS = SPW_TENSOR_MAP_BYTES / sizeof(uint64_t)
};

struct spw_tensor_map {
    uint64_t words[SPW_TENSOR_MAP_WORDS];
    uint64_t address;
    uint16_t next; /* index + 1 of the next map with the same hash; 0: none */
};

/* The newest tensor maps, in a ring. Guarded by spw_locks.tensor_maps. */
struct spw_tensor_maps {
    _Atomic bool any;
    uint32_t added; /* number of maps ever added */
    struct spw_tensor_map maps[SPW_TENSOR_MAPS];
    uint16_t first[SPW_TENSOR_MAPS]; /* by hash, as spw_tensor_map.next */
};

struct spw_submit {
    struct spw_layouts layouts;
    struct spw_indirect indirect;
    struct spw_tensor_maps tensor_maps;
};

extern struct spw_submit spw_submit;
