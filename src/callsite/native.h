/* Native stacks of the calling thread, by libunwind.
 *
 * libunwind is opened at first use, beside this object (lib/) or from the system, and never linked:
 * as a dependency of a preloaded object it would stand in front of the C++ exception machinery of
 * the whole process. Locking: opening takes no lock while it asks the dynamic loader, and may be
 * done by several threads at once; the rest needs none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/stack_cache.h"

/* Opens libunwind, once; without it, which is said once, every native stack is empty. Not to be
 * called with a lock held. */
void spw_callsite_native_open(void);

/* The return addresses of the calling thread, innermost first, without the frames of this object
 * at the inner end. Returns their number, at most `most`; *ret_cut: there were more. */
int spw_callsite_native_walk(uint64_t *ret_addresses, int most, bool *ret_cut);

/* Adds to a proof what makes the stack outside of `frame` what it is: the frame address of a
 * function of this object that is running, and the caller's of this one. `addresses` is what
 * spw_callsite_native_walk gave, called by the same function. What cannot be proved breaks the
 * proof. */
void spw_callsite_native_prove(struct spw_proof *proof, uintptr_t frame, const uint64_t *addresses,
                               int count);
