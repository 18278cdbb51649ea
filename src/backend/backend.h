/* The backend: memory, copies and fences that the pool needs, made with the driver. It does not
 * know the handlers of calls.
 *
 *   backend   implements pool/vm_ops.h: reserves, creates, maps memory; probes the driver
 *   copy      copies between device and host, on streams of spillway's own
 *   fence     fences of streams and of the device
 *   host      finds a place for chunks of host memory
 *
 * Locking: the backend itself has no lock. The ops are called under the pool's lock, with two
 * exceptions: wait_host and wait_soon use the lock of the fences, and seek_host is called before
 * any host chunk exists. grant, note_context and forget_context are called under spw_locks.process.
 * Every driver call is made in a scope of driver/driver.h, and counted for the device. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "driver/driver.h"
#include "pool/vm_ops.h"

struct spw_backend;

/* Creates the backend of a device. Probes whether one call of unmap or of set-access may cover
 * several neighbouring mappings (cuda.h leaves this open for unmap). The probe uses two granules
 * and releases them. Fails with UNSUPPORTED if the device has no virtual memory management. */
enum spw_err spw_backend_create(struct spw_driver *driver, int ordinal,
                                struct spw_backend **ret_backend);

/* Frees the records. With `release`, also destroys events and streams. Without `release`, the
 * contexts of events and streams must already be gone. Takes NULL. */
void spw_backend_destroy(struct spw_backend *backend, bool release);

/* Returns the struct spw_vm for spw_pool_create. The backend owns it. */
struct spw_vm *spw_backend_vm(struct spw_backend *backend);

/* Returns the driver's minimum allocation granularity for device memory, in bytes; a power of
 * two. */
uint64_t spw_backend_granule(const struct spw_backend *backend);

/* Returns the location of host chunks. Valid after vm_ops.probe_host has succeeded. */
CUmemLocation spw_backend_host_place(const struct spw_backend *backend);

/* Sets the longest duration of vm_ops.wait_soon. */
void spw_backend_set_patience(struct spw_backend *backend, uint64_t patience_ns);

/* Sets the function that vm_ops.room calls with the device's ordinal. */
void spw_backend_set_room(struct spw_backend *backend, uint64_t (*room)(int ordinal));

/* Sets the access of device `accessor` to the arena. The new access applies to later mappings; the
 * caller must make the pool refresh the existing ones. Returns false if the list is full or nothing
 * changed. */
bool spw_backend_grant(struct spw_backend *backend, int accessor, CUmemAccess_flags access);

/* Adds a context of this device, or with `peer` of another device that may access this device's
 * memory. Fences of the whole device then cover the streams of that context. */
void spw_backend_note_context(struct spw_backend *backend, CUcontext context, bool peer);

/* Stops making copies in a context that is about to be destroyed. Copies already made in the
 * context are complete when all work of the context is complete. */
void spw_backend_end_context(struct spw_backend *backend, CUcontext context);

/* Removes a context that is about to be destroyed or no longer exists. Its work must be
 * complete. */
void spw_backend_forget_context(struct spw_backend *backend, CUcontext context);

/* Removes all contexts that were added. */
void spw_backend_forget_contexts(struct spw_backend *backend);
