/* Reports the memory that a call of the program uses to the host tiers and to the recording.
 *
 * Locking: that of migrate/migrate.h and record/record.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"

struct spw_use {
    bool known;  /* nothing in the call shows a use of other memory than at `addresses` */
    bool kernel; /* it launches a kernel, which may read more addresses from memory */
    bool first;  /* first launch of that kernel */
    size_t count;
    const uint64_t *addresses; /* in our pools, not owned */
};

/* Announces the memory that a call will use, and its stream, to the host tiers. To be called before
 * the submit barrier is acquired; `per_thread` as in program/stream.h. */
void spw_submit_use_expect(const uint64_t *addresses, size_t count, CUstream stream,
                           bool per_thread);

/* Notes the use in the access logs and in the recording. To be called between acquiring the submit
 * barrier and the call, after spw_submit_use_expect. */
void spw_submit_use_note(const struct spw_use *use);
