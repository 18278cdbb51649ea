/* Facts about kernels, and the built-in kernels, which have real effects.
 *
 * The simulator never reads the instructions of a kernel. A kernel has no effect, unless it is
 * built in or is a known kernel of a library (sim/pytorch/). The simulator reads only the
 * declarations in PTX (parameters, local and shared memory; see the PTX ISA) and the parameters
 * that a cubin lists (layouts.h).
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "common/layout.h"
#include "sim/demand.h"
#include "sim/driver/exec/op.h"
#include "sim/driver/exec/schedule.h"
#include "sim/pytorch/computation.h"
#include "sim/pytorch/declaration.h"

/* A kernel with real effects. `args` is the parameter buffer. */
struct sim_builtin {
    const char *name;
    const struct sim_param *params;
    size_t param_count;
    size_t param_bytes;
    /* Names the memory that the kernel reads and writes. CUDA_ERROR_ILLEGAL_ADDRESS for pageable
     * memory and for an extent beyond the end of the address space, CUDA_ERROR_OUT_OF_MEMORY. */
    CUresult (*name_memory)(struct sim_op *op, const void *args);
    enum sim_outcome (*run)(const void *args, struct sim_item *item);
};

/* The built-in kernel of that name, or NULL. */
const struct sim_builtin *sim_builtin_find(const char *name);

/* True if the built-in kernel computes its results. False for NULL (no built-in kernel), and for
 * spw_touch_NAME, which stands in for the kernels of libraries. */
bool sim_builtin_computes(const struct sim_builtin *builtin);

/* Shapes of arguments (launch_demand.h). */
enum sim_shape {
    SIM_SHAPE_NONE,
    SIM_SHAPE_FLASH,
    SIM_SHAPE_FLASH_BACK,
    SIM_SHAPE_EFFICIENT,
    SIM_SHAPE_EFFICIENT_BACK,
    SIM_SHAPE_LISTS,   /* lists of tensors, in parts */
    SIM_SHAPE_COUNTED, /* the first argument is the number of elements */
    SIM_SHAPE_SPARSE,  /* reads a part of a tensor */
};

struct sim_kernel_traits {
    enum sim_shape shape;
    enum sim_work work;
    enum spw_gpu_type type;
    int width, rows; /* attention: of a head, of a tile; LISTS: `rows` is the number of lists */
    int element_bytes;
    float passes; /* over its memory */
    bool causal;
};

/* Facts about one kernel. */
struct sim_kernel_info {
    char *name;
    const struct sim_builtin *builtin;   /* NULL: none */
    struct sim_computation *computation; /* NULL: none; a kernel without `builtin` and without
                                          * `computation` has no effect */
    enum spw_layout layout;
    bool params_known; /* the places of all parameters are known; false for UNKNOWN, and for NAME if
                        * a parameter is a struct */
    struct sim_param *params;
    size_t param_count;
    size_t param_bytes;            /* of the parameter buffer */
    uint64_t constant_params;      /* a bit for each parameter that points to memory that is only
                                    * read */
    struct sim_declared *declared; /* NAME, CODE, STRUCTS: the parameters in the kernel's name */
    size_t declared_count;
    struct sim_kernel_traits traits;
    size_t local_bytes;       /* per thread */
    size_t shared_bytes;      /* static, per block */
    unsigned int max_threads; /* per block */
};
