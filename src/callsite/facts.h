/* Describes a site in words, for policies to match and people to read.
 *
 * Names of native functions are looked up on first use and kept (names.h): the first description of
 * a site can take milliseconds, so describe sites once and not per allocation.
 *
 * Locking: a mutex inside names.h; the dynamic loader is called without that mutex. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "callsite/names.h"
#include "callsite/table.h"
#include "callsite/text.h"

enum { SPW_CALLSITE_NODE = 128 };

struct spw_callsite_words {
    struct spw_callsite_facts facts; /* points into this struct, or to memory that is never freed */
    struct spw_python_frame python[SPW_CALLSITE_PYTHON];
    struct spw_native_frame native[SPW_CALLSITE_NATIVE];
    char node[SPW_CALLSITE_NODE];
    struct spw_name names[SPW_CALLSITE_NATIVE]; /* of the native frames */
};

/* Describes a site as `spillway sites` prints it. This leaves out the libraries at the inner end
 * that only pass a request on, and the native frames outside of the Python interpreter. With
 * `native` false, native frames and the autograd node are left out. The caller adds process and
 * rank. Must not be called with a lock held. */
void spw_callsite_describe(const struct spw_callsite *site, bool native,
                           struct spw_callsite_words *ret_words);

/* Index of the innermost native frame worth showing; 0 if there is none. Frames of spillway, the
 * driver, the CUDA runtime and PyTorch's allocator are skipped: they only pass the request on. */
int spw_callsite_first_frame(const struct spw_callsite *site);

/* Returns true for the function of CPython that runs Python code. Native frames outside of it are
 * not shown, because the Python frames are clearer. */
bool spw_callsite_is_interpreter(const char *symbol);
