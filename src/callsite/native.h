/* Native stacks of the calling thread, by libunwind.
 *
 * libunwind is opened with dlopen at first use, from the folder lib/ next to this object or from
 * the system. It is never linked: as a dependency of a preloaded object, it would replace the C++
 * exception handling of the whole process. Locking: none. If several threads need libunwind for the
 * first time, one of them opens it and the others wait at most 20 ms. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/stack_cache.h"

/* Opens libunwind, once. If libunwind is missing, logs one line, and all native stacks are empty.
 * Must not be called with a lock held, because it calls the dynamic loader. */
void spw_callsite_native_open(void);

/* Writes the return addresses of the calling thread, innermost first. Omits this object's own
 * frames at the inner end. Returns the number of addresses, at most `most`. *ret_cut is true if
 * there were more. */
int spw_callsite_native_walk(uint64_t *ret_addresses, int most, bool *ret_cut);

/* Adds to `guard` the words that identify the stack outside of `frame`. `frame` is the frame
 * address of a running function of this object that another object has called. `addresses` is the
 * result of spw_callsite_native_walk in that function. Marks the guard as broken if the stack
 * cannot be guarded. */
void spw_callsite_native_guard(struct spw_callsite_guard *guard, uintptr_t frame,
                               const uint64_t *addresses, int count);
