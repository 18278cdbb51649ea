/* Which other devices may reach a device's memory. A device has the right by the access of the
 * memory pool (cuMemPoolSetAccess), or by a context of it that enabled peer access; it ends with
 * the last of them. The driver keeps the two apart, by pool and by context; here all memory of a
 * device is in one pool, which is mapped for all that have either.
 *
 * Locking: spw_locks.process, which the functions take. */
#pragma once

#include "track/lookup.h"

/* Sets the access that device `accessor` has by the memory pool, also for pools opened later. After
 * an error the access is as before; memory that is mapped already may keep more. */
CUresult spw_track_access_set(struct spw_device *device, int accessor, CUmemAccess_flags access);

/* The driver let a context of device `accessor` reach the memory of context `peer` of `device`.
 * After an error the access is as before. */
CUresult spw_track_access_enable(struct spw_device *device, CUcontext peer, int accessor,
                                 CUcontext context);
CUresult spw_track_access_disable(struct spw_device *device, CUcontext peer, int accessor,
                                  CUcontext context);

/* A context ends, and what it enabled or allowed. Memory that is mapped keeps the access until the
 * next change. */
void spw_track_access_forget_context(CUcontext context);

/* In a child after fork: nobody has access. */
void spw_track_access_reset(void);
