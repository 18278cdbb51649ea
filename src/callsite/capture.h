/* Call sites: the program's Python and native frames that asked for memory, as numbers. It does not
 * know CUDA.
 *
 *   capture       the call site of an allocation: the calling thread's stacks, as one number
 *   code_frees    shows whether a code object may have been freed
 *   facts         describes a site in words, for policies and people
 *   label         a short name of a site for people
 *   modules       the loaded objects that contain the code of native frames
 *   names         names of native functions, kept for the life of the process
 *   native        native stacks, by libunwind
 *   python        finds the interpreter of this process
 *   report        writes the sites to the statistics file
 *   rule          policy rules that place sites on the host, and the choice of one to propose
 *   shm           copies of the sites in shared memory, with the memory that each holds
 *   stack_cache   recognises a stack that the thread has had before
 *   state         the state of the folder in one object
 *   strings       texts, each stored once and referred to by a number
 *   symbols       names of functions from the symbols of loaded objects
 *   table         all stacks, each stored once and referred to by a number
 *   tag           the word that a program gives a thread
 *   text          a site as one line of text, written and read
 *   top_sites     the sites that hold most memory, for an out-of-memory report
 *
 * If the thread has had a stack before, the stack is found in the thread's cache (stack_cache.h)
 * without a walk. A new stack is walked, named and entered in the table. The table stores the
 * addresses of native frames. Symbols are looked up only when a site is read.
 *
 * Locking: the folder has one mutex, which is taken only for new stacks. The caller holds no lock
 * of the pool. No function of another library is called with the mutex held. Memory comes from
 * mmap: the tables at the start, and a cache for each thread that allocates. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "callsite/shm.h"
#include "callsite/state.h"
#include "callsite/strings.h"
#include "callsite/table.h"
#include "common/options.h"

/* Starts to capture the stacks that `mode` names. Later calls do nothing. A child after fork keeps
 * its parent's sites and their numbers. */
void spw_callsite_start(enum spw_sites mode);

/* Returns true if stacks are captured. Cheap. */
static inline bool spw_callsite_captures(void)
{
    return atomic_load_explicit(&spw_callsite_state.capture.started, memory_order_relaxed);
}

/* Returns the number of the calling thread's call site. `api` is the name of the function that the
 * program called, in static storage. Returns 0, which means "not known", in four cases: capturing
 * is off, the call is made during another capture of the same thread, the thread's stack is nearly
 * used up, or the table is full. */
uint32_t spw_callsite_capture(const char *api);

/* Return all sites, and all strings, found so far. The tables only grow, so they may be read
 * without a lock. */
const struct spw_callsite_table *spw_callsite_known(void);
const struct spw_strings *spw_callsite_texts(void);

/* Publishes all sites, present and future, in the shared memory `share`, which its owner has
 * initialised (shm.h). NULL stops publishing. */
void spw_callsite_publish(struct spw_callsite_shm *share);

/* For a process that captures nothing: uses the sites of another process from now on
 * (spw_callsite_shm_read). NULL forgets them. Returns false if `share` cannot be read. */
bool spw_callsite_adopt(struct spw_callsite_shm *share,
                        uint64_t (*move)(uint64_t address, void *context), void *context);

/* Returns the number of the calling thread's stacks that were not in its cache. */
unsigned spw_callsite_walks(void);
