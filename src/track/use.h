/* The memory that one call of the program uses, told to the host tiers and to the recording.
 *
 * Locking: that of track/spill.h and record/record.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cuda_api.h"

struct spw_use {
    bool known;  /* as far as can be told, the call uses no memory but that at `addresses` */
    bool kernel; /* it launches a kernel, which may read more addresses from memory */
    bool first;  /* first launch of that kernel */
    size_t count;
    const uint64_t *addresses; /* in our pools, not owned */
};

/* Tells the host tiers which memory a call will use, and on which stream. To be called before the
 * submit barrier is acquired; `per_thread` as in track/stream.h. */
void spw_track_use_expect(const uint64_t *addresses, size_t count, CUstream stream,
                          bool per_thread);

/* Notes the use in the access logs and in the recording. To be called between acquiring the submit
 * barrier and the call, after spw_track_use_expect. */
void spw_track_use_note(const struct spw_use *use);
