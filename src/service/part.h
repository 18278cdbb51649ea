/* Parts of the process's memory that can be paused by themselves: the memory of a rule of the
 * policy, of call sites, or of a tag.
 *
 * Locking: spw_locks.parts, which is held for the list of paused parts only. The names of call
 * sites are looked up, so no other lock may be held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "service/state.h"
#include "stats/stats.h"

/* A part by its name: the name of a rule, a piece of the labels of call sites (with * and ?), or a
 * tag. All memory is also a part, whose name is ignored. The name is borrowed. */
struct spw_part {
    enum spw_control_part kind;
    const char *name; /* NULL counts as "" */
};

/* Finds the blocks of a part. False when there is no such rule, or no call site has the name. */
bool spw_service_part_find(const struct spw_part *part, struct spw_part_blocks *ret_blocks);

/* Notes that a part is paused, once for each part. */
void spw_service_part_begin(const struct spw_part *part);

/* Notes that a part is no longer paused. Returns how many parts are still paused. */
size_t spw_service_part_end(const struct spw_part *part);

/* Notes that no part is paused any more. */
void spw_service_part_end_all(void);
