/* The pool's seam (pool/vm_ops.h) over the real driver: virtual memory and fences of one device.
 *
 * Locking: none of its own. Members of the ops are called under the pool's lock, but for wait_host,
 * which touches nothing that changes; grant and note_context are called by the hooks under the
 * device's lock. Every driver call is made in a scope of driver/driver.h and counted for the
 * device. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "driver/driver.h"
#include "pool/vm_ops.h"

struct spw_backend;

/* Opens the seam of a device and probes, with two granules that are released again, whether one
 * call of unmap and of set-access may cover neighbouring mappings (cuda.h does not say for unmap).
 * Fails with UNSUPPORTED when the device has no virtual memory management. */
enum spw_err spw_backend_create(struct spw_driver *driver, int ordinal,
                                struct spw_backend **ret_vm);

/* Frees the records. With `release`, events are destroyed; without, the context is gone already.
 * Takes NULL. */
void spw_backend_destroy(struct spw_backend *vm, bool release);

/* The functions to create a pool with; the cookie is the struct spw_backend. */
const struct spw_vm_ops *spw_backend_ops(void);

/* The driver's minimum allocation granularity for device memory, in bytes; a power of two. */
uint64_t spw_backend_granule(const struct spw_backend *vm);

/* The node of chunks on the host: one that works, once that was found out. */
int spw_backend_host_node(const struct spw_backend *vm);

/* How long a wait that must not last (wait_soon of the seam) lasts at most. */
void spw_backend_set_patience(struct spw_backend *vm, uint64_t patience_ns);

/* Lets device `accessor` read, and write if `writable`, the arena; both false takes the right away.
 * Applies to everything mapped from now on: the caller has the pool refresh what is mapped. False
 * when the list is full or nothing changed. */
bool spw_backend_grant(struct spw_backend *vm, int accessor, bool readable, bool writable);

/* Notes a context of this device, or of a peer that may reach its memory, so that fences of the
 * whole device cover its streams too. */
void spw_backend_note_context(struct spw_backend *vm, CUcontext context, bool peer);

/* The context is about to go with all its events, or is gone; its work is complete. */
void spw_backend_forget_context(struct spw_backend *vm, CUcontext context);

/* The same for all contexts that were noted. */
void spw_backend_forget_contexts(struct spw_backend *vm);
