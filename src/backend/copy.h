/* Copies between the tiers: a stream of spillway's own, and what is done on it.
 *
 * The stream is created at first use in a context of the device and follows another one when that
 * is destroyed. Caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "backend/fence.h"

struct spw_copier {
    struct spw_fences *fences;
    CUstream handle; /* NULL: none yet */
    CUcontext context;
};

/* As the seam's copy (pool/vm_ops.h). */
enum spw_err spw_backend_copier_copy(struct spw_copier *copier, const struct spw_vm_copy *copies,
                                     size_t count, bool after_all, struct spw_fence **ret_fence);

/* As the seam's hash. */
enum spw_err spw_backend_copier_hash(struct spw_copier *copier, uint64_t address, uint64_t bytes,
                                     uint64_t *ret_hash);

/* Writes words to the end of [from, from + bytes), copies them to that of [to, to + bytes) and
 * reads them there. Blocks. When *ret_busy is set, the work may still be under way, and the memory
 * must stay. */
enum spw_err spw_backend_copier_try(struct spw_copier *copier, uint64_t to, uint64_t from,
                                    uint64_t bytes, bool *ret_busy);

/* The context is about to go, or gone. */
void spw_backend_copier_forget_context(struct spw_copier *copier, CUcontext context);

/* With `destroy`, the stream is given back to the driver. */
void spw_backend_copier_fini(struct spw_copier *copier, bool destroy);
