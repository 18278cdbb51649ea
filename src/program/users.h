/* Contexts that work on a device's memory without an access right to it. An example is a copy
 * between devices, or between a device and the host: the copy runs in the context of its stream,
 * which may belong to another device. Before such work is submitted, its context is added to the
 * pool that owns the memory. The pool then waits for the work before it moves or unmaps memory.
 *
 * Contexts that have an access right (cuCtxEnablePeerAccess, cuMemPoolSetAccess) are added in
 * device/device.h.
 *
 * Does nothing while the program uses one device. Any thread, inside the submit barrier or before
 * it is acquired. Locking: takes spw_locks.process, and the locks of the pools and of the tables of
 * streams and contexts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"

/* Records work on these addresses, before it is submitted to `stream`. Ignores address 0 and
 * addresses that are in no pool. `per_thread` as in program/stream.h. */
void spw_program_users_note(const uint64_t *addresses, size_t count, CUstream stream,
                            bool per_thread);

/* Records work whose addresses are not known. Such work may use all pools. */
void spw_program_users_note_anywhere(CUstream stream, bool per_thread);
