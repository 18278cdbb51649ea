/* Contexts: the per-thread stack, creation and end, sticky errors.
 *
 * A context's memory is kept after it is destroyed, because handles and thread stacks may still
 * name it (cuda.h: such a thread gets CUDA_ERROR_CONTEXT_IS_DESTROYED). The primary context of a
 * device is always the same object, alive or not.
 *
 * Locking: the simulator's lock (entry.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/device.h"

struct sim_work_context; /* owned by the work side: streams, events, modules of a context */

struct CUctx_st {
    struct CUctx_st *next; /* list of all contexts there ever were */
    unsigned long long id; /* cuCtxGetId: never used twice */
    struct sim_device *device;
    bool live;
    bool ending; /* sim_ctx_end() is at work and may have let go of the lock */
    bool is_primary;
    unsigned int refs;  /* cuCtxAttach; not of primary contexts */
    unsigned int flags; /* CUctx_flags */
    CUresult sticky;    /* CUDA_SUCCESS, or the error every further call reports */
    uint64_t peers;     /* bit per device ordinal: cuCtxEnablePeerAccess was called */
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    struct sim_work_context *work; /* set by sim_work_create() */
};

/* The calling thread's current context, or NULL. It may have been destroyed by another thread. */
CUcontext sim_ctx_current(void);

/* The current context of a thread that needs one: CUDA_ERROR_INVALID_CONTEXT without,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED, or its sticky error. */
CUresult sim_ctx_require(CUcontext *ret_ctx);

/* Whether `ctx` is the handle of a live context that is not ending (NULL is not). */
bool sim_ctx_is_live(CUcontext ctx);

/* Makes `code` the sticky error of the context (the first one stays): what a fault on a real device
 * does. Queued work of the context is the work side's to drop. */
void sim_ctx_fail(CUcontext ctx, CUresult code);

/* The same for every live context on a device that `devices` (a bit per ordinal) names. */
void sim_ctx_fail_devices(uint64_t devices, CUresult code);

/* Whether a live context on `device` has enabled access to memory of `owner`. */
bool sim_ctx_peers_enabled(const struct sim_device *device, const struct sim_device *owner);

/* A new context of the device that is not live yet; it is never freed. NULL when host memory is
 * out. For api/lifetime.c, which creates and ends contexts. */
CUcontext sim_ctx_new(struct sim_device *device);

/* Makes the context live, with a new id and the defaults of a fresh one. */
void sim_ctx_reset(CUcontext ctx, unsigned int flags);

/* The calling thread's stack. Push: CUDA_ERROR_OUT_OF_MEMORY when it is too deep. Pop gives NULL
 * when it is empty. Set replaces the top; NULL pops. */
CUresult sim_ctx_push(CUcontext ctx);
CUcontext sim_ctx_pop(void);
CUresult sim_ctx_set(CUcontext ctx);

/* A number for the calling thread that no other thread ever has, not even after it has ended. For
 * per-thread streams and thread capture modes. May be called without the lock. */
uint64_t sim_thread_id(void);
