/* Call sites: who asked for memory. One call names the calling thread's stack, native and Python.
 *
 * A stack that a thread has had before is recognised without walking it (proof.h); a new one is
 * walked, named and entered in the table. Both stacks are kept as they are: symbols of native
 * frames are looked up when somebody wants to read them.
 *
 * Locking: one mutex inside, taken only for a stack that is not recognised; never called with a
 * lock of the pool. Nothing is called with it held. Memory is taken with mmap: the tables at the
 * start, and a cache per thread that allocates. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"
#include "callsite/shm.h"
#include "callsite/strings.h"
#include "callsite/table.h"

/* Begins to capture what `mode` says. Again in a child after fork; sites keep their numbers. */
void spw_callsite_start(enum spw_sites mode);

/* The number of the calling thread's site, for a call of `api` (static storage); 0 when it is not
 * known: capturing is off, from within itself, or the table is full. */
uint32_t spw_callsite_capture(const char *api);

/* The sites and the texts so far; they only grow. */
const struct spw_callsite_table *spw_callsite_known(void);
const struct spw_strings *spw_callsite_texts(void);

/* From now on sites are published in `share`, begun by its owner; NULL: nowhere. Those that are
 * known already are at once. */
void spw_callsite_publish(struct spw_callsite_shm *share);

/* In a process that captures nothing: its sites become those of a share (spw_callsite_shm_read),
 * or, NULL, there are none. */
bool spw_callsite_adopt(struct spw_callsite_shm *share,
                        uint64_t (*move)(uint64_t address, void *context), void *context);

/* How many stacks of the calling thread were not recognised and had to be walked. */
unsigned spw_callsite_walks(void);
