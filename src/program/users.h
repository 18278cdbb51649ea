/* Contexts whose work uses memory of a device without an access right: a copy between devices, or
 * one between a device and the host, runs in the stream's context, which may be another device's.
 * That context is added to the pool that has the memory before the work is submitted, so that the
 * pool waits for such work before it moves or unmaps memory.
 *
 * Contexts with an access right (cuCtxEnablePeerAccess, cuMemPoolSetAccess) are added in
 * device/device.h.
 *
 * Does nothing while the program uses one device. Any thread, inside the submit barrier or before
 * it is acquired. Locking: takes spw_locks.process and the locks of the pools and of the tables of
 * streams and contexts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"

/* Notes work that names these addresses, before it is submitted to `stream`; 0 and addresses that
 * are in no pool are left out. `per_thread` as in program/stream.h. */
void spw_program_users_note(const uint64_t *addresses, size_t count, CUstream stream,
                            bool per_thread);

/* The same for work whose addresses are not known: it may use all pools. */
void spw_program_users_note_anywhere(CUstream stream, bool per_thread);
