/* Kinds of kernels that are computed (computation.h), and what is read from the name of one. Each
 * group of kinds is in a file of its own. */
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

/* The kinds, each group by its end: one without a name. */
extern const struct sim_kernel_kind sim_elementwise_kinds[], sim_reduce_kinds[], sim_cub_kinds[],
    sim_indexing_kinds[], sim_sorting_kinds[], sim_tensor_kinds[];
