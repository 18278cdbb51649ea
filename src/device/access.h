/* Which other devices may reach a device's memory. A device gets access through the memory pool
 * (cuMemPoolSetAccess) or through a context that enables peer access, and keeps it until the last
 * of these rights ends. The driver keeps these rights apart, by pool and by context. In spillway
 * all memory of a device is in one pool, which is mapped for every device that has any of these
 * rights.
 *
 * Locking: spw_locks.process, which the functions take. */
#pragma once

#include "device/lookup.h"

/* Sets the access that device `accessor` has through the memory pool, also for pools opened later.
 * After an error the access is as before, but memory that is already mapped may keep more
 * access. */
CUresult spw_device_access_set(struct spw_device *device, int accessor, CUmemAccess_flags access);

/* Note that the driver gave a context of device `accessor` access to the memory of context `peer`
 * of `device`, or ended that access. After an error the access is as before. */
CUresult spw_device_access_enable(struct spw_device *device, CUcontext peer, int accessor,
                                  CUcontext context);
CUresult spw_device_access_disable(struct spw_device *device, CUcontext peer, int accessor,
                                   CUcontext context);

/* Ends the access that a context has to others or gives to others, as the context ends. Memory that
 * is already mapped keeps the access until the next change. */
void spw_device_access_forget_context(CUcontext context);

/* In a child after fork: nobody has access. */
void spw_device_access_reset(void);
