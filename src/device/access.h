/* Access of other devices to a device's memory. CUDA grants such access in two ways: through the
 * memory pool (cuMemPoolSetAccess), and through a context that enables peer access. The driver
 * records each grant separately. In spillway all memory of a device is in one pool. That pool is
 * mapped for every device that has at least one grant. A device loses access when its last grant
 * ends.
 *
 * Locking: the functions take spw_locks.process. */
#pragma once

#include "device/lookup.h"

/* Sets the access that the memory pool grants to device `accessor`. The access also applies to
 * pools that are opened later. After an error the access is unchanged, but memory that is already
 * mapped may allow more access than that. */
CUresult spw_device_access_set(struct spw_device *device, int accessor, CUmemAccess_flags access);

/* Record that the driver granted a context of device `accessor` access to the memory of context
 * `peer` of `device`, or that it ended this access. After an error the access is unchanged. */
CUresult spw_device_access_enable(struct spw_device *device, CUcontext peer, int accessor,
                                  CUcontext context);
CUresult spw_device_access_disable(struct spw_device *device, CUcontext peer, int accessor,
                                   CUcontext context);

/* Ends every grant that a context received or gave. Called when the context ends. Memory that is
 * already mapped keeps its access until the next change. */
void spw_device_access_forget_context(CUcontext context);

/* In a child after fork: ends all access. */
void spw_device_access_reset(void);
