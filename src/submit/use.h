/* Reports the memory that a call of the program uses to the host tiers and to the recording.
 *
 * Locking: takes the locks of migrate/migrate.h and record/record.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"

struct spw_use {
    bool known;  /* the call shows no sign of using memory that is not at `addresses` */
    bool kernel; /* the call launches a kernel, which may read more addresses from memory */
    size_t count;
    const uint64_t *addresses; /* addresses in spillway's pools; not owned */
};

/* Announces the memory that a call will use, and its stream, to the host tiers. Must be called
 * before the submit barrier is acquired. `per_thread` as in program/stream.h. */
void spw_submit_use_expect(const uint64_t *addresses, size_t count, CUstream stream,
                           bool per_thread);

/* Records the use in the access logs and in the recording. Must be called after the submit barrier
 * is acquired and before the call, and after spw_submit_use_expect. */
void spw_submit_use_note(const struct spw_use *use);
