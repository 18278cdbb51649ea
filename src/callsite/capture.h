/* Captures the call site of an allocation: the native and Python stacks of the calling thread, as
 * one number.
 *
 * A stack that the thread has had before is found in its cache (stack_cache.h) without a walk. A
 * new stack is walked, named and entered in the table. The table keeps addresses of native frames;
 * symbols are looked up only when somebody reads a site.
 *
 * Locking: one mutex inside, taken only for new stacks. The caller holds no lock of the pool, and
 * no foreign function is called with the mutex held. Memory comes from mmap: the tables at the
 * start, and a cache for each thread that allocates. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "callsite/shm.h"
#include "callsite/strings.h"
#include "callsite/table.h"
#include "common/options.h"

/* Starts to capture the stacks that `mode` names. Later calls do nothing; a child after fork keeps
 * its parent's sites and their numbers. */
void spw_callsite_start(enum spw_sites mode);

extern _Atomic bool spw_callsite_started;

/* True when stacks are captured; cheap. */
static inline bool spw_callsite_captures(void)
{
    return atomic_load_explicit(&spw_callsite_started, memory_order_relaxed);
}

/* Returns the number of the calling thread's call site. `api` names the function that the program
 * called and must have static storage. 0 means "not known": capturing is off, the call comes from
 * within a capture, the thread's stack is nearly used up, or the table is full. */
uint32_t spw_callsite_capture(const char *api);

/* All sites and strings so far. Both only grow, so they may be read without a lock. */
const struct spw_callsite_table *spw_callsite_known(void);
const struct spw_strings *spw_callsite_texts(void);

/* Publishes all sites, present and future, in the shared memory `share`, which its owner has set up
 * (shm.h). NULL stops publishing. */
void spw_callsite_publish(struct spw_callsite_shm *share);

/* For a process that captures nothing: makes the sites of another process its own, by
 * spw_callsite_shm_read. NULL forgets them again. Returns false when `share` cannot be read. */
bool spw_callsite_adopt(struct spw_callsite_shm *share,
                        uint64_t (*move)(uint64_t address, void *context), void *context);

/* Number of stacks of the calling thread that were not in its cache. */
unsigned spw_callsite_walks(void);
