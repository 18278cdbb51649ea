/* The pools of the devices: made at first use, told about streams and contexts, closed.
 *
 * Locking: opening, closing, access and contexts take spw_locks.process. A pool
 * that is closed while another thread uses it is the program's error: it destroys a context in use.
 */
#pragma once

#include "track/lookup.h"

/* The slow half of spw_track_device_pool. */
struct spw_pool *spw_track_device_open(struct spw_device *device);

/* The pool of a device, opened if need be. NULL when there can be none: the call passes then. */
static inline struct spw_pool *spw_track_device_pool(struct spw_device *device)
{
    struct spw_pool *pool = atomic_load_explicit(&device->pool, memory_order_acquire);

    return SPW_LIKELY(pool != NULL) ? pool : spw_track_device_open(device);
}

/* With SPILLWAY_CHECK: says which invariant of the pool is broken, if one is. */
void spw_track_device_check(const struct spw_device *device, struct spw_pool *pool);

/* Gives back the pool with everything in it, whoever holds it; the next use opens another. */
void spw_track_device_close(struct spw_device *device, enum spw_closing closing);

/* A stream is about to be destroyed: every pool settles what was freed on it. */
void spw_track_device_retire_stream(const struct spw_stream *stream);

/* A context of the device was seen for the first time, or is about to go: told to every pool whose
 * memory is used from it. */
void spw_track_device_note_context(struct spw_device *device, CUcontext context);
void spw_track_device_forget_context(CUcontext context);

/* Sets what device `accessor` may do with the device's memory, now and for later pools. */
CUresult spw_track_device_grant(struct spw_device *device, int accessor, CUmemAccess_flags access);
