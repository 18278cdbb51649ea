/* Kernels of PyTorch and CUB that are really computed.
 *
 * A kernel is known by its name, in which its types and functors stand, and by the layout of its
 * arguments; no instruction is read. Small ones are computed, so that a program's decisions are
 * those of a real run: how many elements a mask has, if a sequence has ended. A launch whose
 * arguments do not look as they should does nothing.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/driver/compute/call.h"
#include "sim/driver/compute/functor.h"

struct sim_computation;

/* A kind of kernels. */
struct sim_kernel_kind {
    const char *name; /* of the function, without its namespace */
    /* Reads the rest of the kernel's name. False if it is not known. */
    bool (*read)(const struct sim_cxx_entity *kernel, struct sim_computation *computation);
    enum sim_outcome_of_call (*run)(const struct sim_computation *computation,
                                    const struct sim_call *call);
};

/* An argument from which elements are read: a pointer, a counter, or a pointer and a test of what
 * it points to. */
enum sim_source_kind { SIM_SOURCE_NONE, SIM_SOURCE_POINTER, SIM_SOURCE_COUNTER, SIM_SOURCE_TEST };

struct sim_source_type {
    enum sim_source_kind kind;
    enum sim_type type;
};

/* A kernel as its name describes it. */
struct sim_computation {
    const struct sim_kernel_kind *kind;
    struct sim_functor functor;
    struct sim_source_type sources[2];
    enum sim_type input, output; /* where no functor has them */
    size_t element_bytes;        /* of elements that are only moved */
    size_t batch, shapes;        /* tensors and shapes that the arguments have room for */
    size_t unit;                 /* elements that are moved together */
    int way;                     /* a kind may have several */
    bool casts;                  /* the types of elements are in the arguments */
};

/* The computation of a kernel by its mangled name, to be freed by the caller. NULL if it is not
 * known. */
struct sim_computation *sim_computation_read(const char *name);

/* Computes a launch, if it is small enough. */
enum sim_outcome_of_call sim_computation_run(const struct sim_computation *computation,
                                             const struct sim_call *call);

/* The kinds, each group by its end: one without a name. */
extern const struct sim_kernel_kind sim_elementwise_kinds[], sim_reduce_kinds[], sim_cub_kinds[],
    sim_indexing_kinds[], sim_sorting_kinds[], sim_tensor_kinds[];
