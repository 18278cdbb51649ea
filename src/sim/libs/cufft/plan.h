/* The simulated cuFFT. It does not know the other libraries.
 *
 *   execute    executes plans
 *   libcufft   the version of the library's symbols
 *   make       makes plans
 *   plan       plans: the shape of a transform, the layout of its input and output
 *
 * Locking: a lock guards the table of plans; a plan is used by one thread at a time, as the library
 * documents. */
#pragma once

#include <cufft.h>
#include <cufftXt.h>

#include "sim/libs/common/shim.h"

#define SIM_CUFFT_MAX_RANK 3

/* The input or the output of a transform; all lengths are in elements. */
struct sim_cufft_side {
    cudaDataType type;
    long long stride;                      /* from an element of the last dimension to the next */
    long long distance;                    /* from a transform of the batch to the next */
    long long extents[SIM_CUFFT_MAX_RANK]; /* elements transformed */
    long long embed[SIM_CUFFT_MAX_RANK];   /* elements allocated; embed[0] is not used */
};

struct sim_cufft_plan {
    CUstream stream;
    bool is_made;
    bool allocates; /* true: the plan allocates a work area; false: the caller sets one */
    void *own_area; /* the allocated work area; NULL: none */
    void *area;     /* the work area in use */
    size_t area_bytes;
    int rank;
    long long batch;
    struct sim_cufft_side in;
    struct sim_cufft_side out;
};

/* The plan behind a handle, or NULL. */
struct sim_cufft_plan *sim_cufft_find(cufftHandle handle);

/* Bytes from the first element of a side to the last. */
size_t sim_cufft_side_bytes(const struct sim_cufft_plan *plan, const struct sim_cufft_side *side);
