/* Sites in words: what policies are matched against, and what people are told.
 *
 * Names of native functions are looked up when they are first asked for and kept, a bounded number
 * of them; so the words of a site cost milliseconds once, and are not for every allocation.
 * Locking: a mutex inside (names.h); the dynamic loader is asked without it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/text.h"
#include "callsite/table.h"

enum { SPW_CALLSITE_NODE = 128 };

struct spw_callsite_words {
    struct spw_callsite_facts facts; /* its pointers lead into the struct, or to what stays */
    struct spw_python_frame python[SPW_CALLSITE_PYTHON];
    struct spw_native_frame native[SPW_CALLSITE_NATIVE];
    char node[SPW_CALLSITE_NODE];
};

/* Puts a site into words, as `spillway sites` prints it: without the libraries at the inner end
 * that only hand a request on, and without native frames where Python frames tell the rest. With
 * `native` unset native frames and the node are left out. Process and rank are the caller's to add.
 * Not to be called with a lock held. */
void spw_callsite_describe(const struct spw_callsite *site, bool native,
                           struct spw_callsite_words *ret_words);

/* The innermost native frame that says something: libraries that only hand a request on to the
 * driver, the CUDA runtime and PyTorch's allocator, are skipped. */
int spw_callsite_first_frame(const struct spw_callsite *site);

/* Whether a function of this name runs Python code: the Python frames tell what is outside. */
bool spw_callsite_is_interpreter(const char *symbol);
