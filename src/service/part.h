/* Parts of the process's memory that can be paused separately: the memory of a rule of the policy,
 * of call sites, or of a tag.
 *
 * Locking: spw_locks.parts guards the list of paused parts, and is held only while the list is
 * used. These functions look up the names of call sites, so the caller must not hold any other
 * lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "service/state.h"
#include "stats/stats.h"

/* A part, and its name: the name of a rule, a piece of the labels of call sites (with * and ?), or
 * a tag. The whole memory is also a part; its name is ignored. The struct does not own the name. */
struct spw_part {
    enum spw_control_part kind;
    const char *name; /* NULL counts as "" */
};

/* Finds the blocks of a part. Returns false if there is no such rule, or if no call site has the
 * name. */
bool spw_service_part_find(const struct spw_part *part, struct spw_part_blocks *ret_blocks);

/* Records that a part is paused. A part is recorded only once. */
void spw_service_part_begin(const struct spw_part *part);

/* Records that a part is no longer paused. Returns the number of parts that are still paused. */
size_t spw_service_part_end(const struct spw_part *part);

/* Records that no part is paused. */
void spw_service_part_end_all(void);
