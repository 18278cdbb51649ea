/* The copier: copies between device and host memory on a stream of spillway's own.
 *
 * The stream is created at first use, in a context of the device. If that context is destroyed, the
 * stream is created again in another context. No locking: the caller holds the pool's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/fence.h"
#include "common/err.h"

struct spw_backend_copier {
    struct spw_backend_fences *fences;
    CUstream handle; /* NULL: not created yet */
    CUcontext context;
};

/* Implements vm_ops.copy. */
enum spw_err spw_backend_copier_copy(struct spw_backend_copier *copier,
                                     const struct spw_vm_copy *copies, size_t count, bool after_all,
                                     struct spw_backend_fence **ret_fence);

/* Implement vm_ops.read and vm_ops.write. After an error the copy may still be in progress, so the
 * host memory must not be freed. */
enum spw_err spw_backend_copier_read(struct spw_backend_copier *copier, void *to, uint64_t address,
                                     uint64_t bytes);
enum spw_err spw_backend_copier_write(struct spw_backend_copier *copier, uint64_t address,
                                      const void *from, uint64_t bytes);

/* Implements vm_ops.hash. */
enum spw_err spw_backend_copier_hash(struct spw_backend_copier *copier, uint64_t address,
                                     uint64_t bytes, uint64_t *ret_hash);

/* Probes a mapping: writes a pattern to the end of [from, from + bytes), copies the pattern to the
 * end of [to, to + bytes), and reads it there. Waits for the copies. If *ret_busy is set on return,
 * the work may still be in progress, and the memory must not be unmapped. */
enum spw_err spw_backend_copier_probe(struct spw_backend_copier *copier, uint64_t to, uint64_t from,
                                      uint64_t bytes, bool *ret_busy);

/* Forgets the stream if it belongs to `context`, which is about to be destroyed or no longer
 * exists. */
void spw_backend_copier_forget_context(struct spw_backend_copier *copier, CUcontext context);

/* Forgets the stream; with `destroy`, destroys it. */
void spw_backend_copier_fini(struct spw_backend_copier *copier, bool destroy);
