/* Which other devices may reach a device's memory. A device has access by the memory pool
 * (cuMemPoolSetAccess) or by a context that enabled peer access, until the last of these rights
 * ends. The driver keeps them apart, by pool and by context. Here all memory of a device is in one
 * pool, which is mapped for every device with one of the rights.
 *
 * Locking: spw_locks.process, which the functions take. */
#pragma once

#include "device/lookup.h"

/* Sets the access that device `accessor` has by the memory pool, also for pools opened later. After
 * an error the access is as before; memory that is mapped already may keep more. */
CUresult spw_device_access_set(struct spw_device *device, int accessor, CUmemAccess_flags access);

/* Note that the driver gave a context of device `accessor` access to the memory of context `peer`
 * of `device`, or ended it. After an error the access is as before. */
CUresult spw_device_access_enable(struct spw_device *device, CUcontext peer, int accessor,
                                  CUcontext context);
CUresult spw_device_access_disable(struct spw_device *device, CUcontext peer, int accessor,
                                   CUcontext context);

/* Ends the access that a context enabled or allowed, as the context ends. Memory that is mapped
 * keeps the access until the next change. */
void spw_device_access_forget_context(CUcontext context);

/* In a child after fork: nobody has access. */
void spw_device_access_reset(void);
