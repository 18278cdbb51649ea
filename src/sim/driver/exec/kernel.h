/* What is known of a kernel, and the kernels that have real effects.
 *
 * Images are never parsed for instructions: a kernel does nothing, unless it has the name of a
 * built-in one. What PTX says in its declarations is known (PTX ISA: parameters, local and shared
 * memory), and what a cubin says of parameters (layouts.h).
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "sim/driver/exec/declaration.h"
#include "sim/driver/exec/op.h"
#include "sim/driver/exec/schedule.h"
#include "sim/record.h"

/* One parameter, by its place in the parameter buffer. */
struct sim_param {
    size_t offset;
    size_t size;
    bool is_word; /* a 64-bit value of its own, so it may be an address */
};

/* A kernel with real effects. `args` is the parameter buffer. */
struct sim_builtin {
    const char *name;
    const struct sim_param *params;
    size_t param_count;
    size_t param_bytes;
    /* Names the memory it reads and writes. CUDA_ERROR_ILLEGAL_ADDRESS for an extent beyond the end
     * of addresses and for pageable memory, CUDA_ERROR_OUT_OF_MEMORY. */
    CUresult (*name_memory)(struct sim_op *op, const void *args);
    enum sim_outcome (*run)(const void *args, struct sim_item *item);
};

/* The built-in kernel of that name, or NULL. */
const struct sim_builtin *sim_builtin_find(const char *name);

/* Whether it writes what a kernel of that name would: not the one that libraries are stood for by,
 * nor no built-in at all (NULL). */
bool sim_builtin_computes(const struct sim_builtin *builtin);

/* What is known of one kernel. */
struct sim_kernel_info {
    char *name;
    const struct sim_builtin *builtin; /* NULL: does nothing */
    enum sim_record_layout layout;
    bool params_known; /* all of them: always but for SIM_RECORD_LAYOUT_NAME with a struct, and
                          UNKNOWN */
    struct sim_param *params;
    size_t param_count;
    size_t param_bytes;            /* of the parameter buffer */
    struct sim_declared *declared; /* NAME, CODE, STRUCTS: what the name says of each parameter */
    size_t declared_count;
    size_t local_bytes;       /* per thread */
    size_t shared_bytes;      /* static, per block */
    unsigned int max_threads; /* per block */
};
