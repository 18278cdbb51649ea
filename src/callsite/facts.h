/* Describes a site in words, for policies to match and people to read.
 *
 * Names of native functions are looked up at first use and stored (names.h). The first description
 * of a site can take milliseconds. Callers should therefore describe each site once, not at each
 * allocation.
 *
 * Locking: names.h has a mutex. The dynamic loader is called without that mutex. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/names.h"
#include "callsite/table.h"
#include "callsite/text.h"

enum { SPW_CALLSITE_NODE = 128 };

struct spw_callsite_words {
    struct spw_callsite_facts facts; /* the facts point into this struct, or to memory that is never
                                        freed */
    struct spw_python_frame python[SPW_CALLSITE_PYTHON];
    struct spw_native_frame native[SPW_CALLSITE_NATIVE];
    char node[SPW_CALLSITE_NODE];
    struct spw_name names[SPW_CALLSITE_NATIVE]; /* names of the native frames */
};

/* Describes a site as `spillway sites` prints it. The description omits the innermost libraries
 * that only pass a request on, and the native frames outside of the Python interpreter. If `native`
 * is false, it also omits all native frames and the autograd node. The caller adds process and
 * rank. Must not be called with a lock held. */
void spw_callsite_describe(const struct spw_callsite *site, bool native,
                           struct spw_callsite_words *ret_words);

/* Returns the index of the innermost native frame worth showing; 0 if there is none. Frames of
 * spillway, the driver, the CUDA runtime and PyTorch's allocator are skipped, because they only
 * pass the request on. */
int spw_callsite_first_frame(const struct spw_callsite *site);

/* Returns true for the function of CPython that runs Python code. Native frames outside of this
 * function are not shown, because the Python frames are clearer. */
bool spw_callsite_is_interpreter(const char *symbol);
