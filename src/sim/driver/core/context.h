/* Contexts: their state, the stack of each thread, sticky errors. api/lifetime.h creates and ends
 * them.
 *
 * The struct of a destroyed context is kept, because handles and thread stacks may still refer to
 * the context. If the current context is destroyed, calls return CUDA_ERROR_CONTEXT_IS_DESTROYED
 * (cuda.h). The primary context of a device is always the same object, live or not.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/driver/core/device.h"

struct sim_work_context; /* exec/work_context.h: streams, events, modules of a context */

struct CUctx_st {
    struct CUctx_st *next; /* list of all contexts ever created */
    unsigned long long id; /* cuCtxGetId: never used twice */
    struct sim_device *device;
    bool live;
    bool ending; /* sim_ctx_end() has begun and may have released the lock */
    bool is_primary;
    unsigned int refs;  /* cuCtxAttach; not used for primary contexts */
    unsigned int flags; /* CUctx_flags */
    CUresult sticky;    /* CUDA_SUCCESS, or the error that every further call reports */
    uint64_t peers;     /* bit per device ordinal: cuCtxEnablePeerAccess was called */
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    struct sim_work_context *work; /* set by sim_work_create() */
};

/* The calling thread's current context, or NULL. Another thread may have destroyed it. */
CUcontext sim_ctx_current(void);

/* The calling thread's current context. CUDA_ERROR_INVALID_CONTEXT if the thread has none,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED, or the context's sticky error. */
CUresult sim_ctx_require(CUcontext *ret_ctx);

/* True if `ctx` is the handle of a live context that is not ending; false for NULL. */
bool sim_ctx_is_live(CUcontext ctx);

/* Makes `code` the sticky error of the context, as a fault on a real device does, unless the
 * context has such an error already. The scheduler then drops the context's queued work. */
void sim_ctx_fail(CUcontext ctx, CUresult code);

/* Makes `code` the sticky error of every live context on `devices`, a bit per ordinal. */
void sim_ctx_fail_devices(uint64_t devices, CUresult code);

/* True if a live context on `device` has enabled access to memory of `owner`. */
bool sim_ctx_peers_enabled(const struct sim_device *device, const struct sim_device *owner);

/* Allocates a context of the device. The context is not live yet and is never freed. NULL if host
 * memory is exhausted. Only api/lifetime.c calls this function. */
CUcontext sim_ctx_new(struct sim_device *device);

/* Makes the context live, with a new id and default settings. */
void sim_ctx_reset(CUcontext ctx, unsigned int flags);

/* The calling thread's stack of contexts. Push returns CUDA_ERROR_OUT_OF_MEMORY if the stack is
 * full. Pop returns NULL if the stack is empty. Set replaces the top; with NULL it only pops. */
CUresult sim_ctx_push(CUcontext ctx);
CUcontext sim_ctx_pop(void);
CUresult sim_ctx_set(CUcontext ctx);

/* A number that identifies the calling thread, for per-thread streams and thread capture modes. No
 * other thread ever gets the same number, even after this thread has ended. May be called without
 * the lock. */
uint64_t sim_thread_id(void);
