/* Kinds of computed kernels (computation.h), and the facts that a kernel's name shows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/driver/compute/call.h"
#include "sim/pytorch/functor.h"

struct sim_computation;

/* A kind of kernels. */
struct sim_kernel_kind {
    const char *name; /* name of the function, without its namespace */
    /* Reads the rest of the kernel's name. False if the kernel is not known. */
    bool (*read)(const struct sim_cxx_entity *kernel, struct sim_computation *computation);
    enum sim_outcome_of_call (*run)(const struct sim_computation *computation,
                                    const struct sim_call *call);
    /* As sim_computation_bytes. NULL: never known. */
    uint64_t (*bytes)(const struct sim_computation *computation, const struct sim_call *call,
                      bool *ret_gaps);
};

/* An argument that is a source of elements: a pointer, a counter, or a pointer and a test. With a
 * test, the source's elements are the results of the test. */
enum sim_source_kind { SIM_SOURCE_NONE, SIM_SOURCE_POINTER, SIM_SOURCE_COUNTER, SIM_SOURCE_TEST };

struct sim_source_type {
    enum sim_source_kind kind;
    enum sim_type type;
};

/* A kernel, described by its name. */
struct sim_computation {
    const struct sim_kernel_kind *kind;
    struct sim_functor functor;
    struct sim_source_type sources[2];
    enum sim_type input, output; /* used if there is no functor that has these types */
    size_t element_bytes;        /* of elements that are only moved */
    size_t batch, shapes;        /* maximum numbers of tensors and of shapes that the arguments can
                                  * contain */
    size_t unit;                 /* elements that are moved together */
    int way;                     /* variant, defined by the kind */
    bool casts;                  /* the arguments, not the functor, have the element types */
};

/* The groups of kinds; each group ends with a kind without a name. */
extern const struct sim_kernel_kind sim_elementwise_kinds[], sim_reduce_kinds[], sim_cub_kinds[],
    sim_indexing_kinds[], sim_sorting_kinds[], sim_tensor_kinds[];
