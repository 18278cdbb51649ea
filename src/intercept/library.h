/* Functions of libraries above the driver that programs find here first: which one a caller would
 * have reached without us.
 *
 * No locks; what was found is kept, by call site, and the library it is of stays loaded. */
#pragma once

#include "driver/driver.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether a row is a function of such a library, not of the driver. */
bool spw_intercept_library_has(enum spw_fn fn);

/* A call that was handed on to a library and is under way on this thread. */
struct spw_library_call {
    enum spw_fn fn;
    const void *real; /* NULL: there is none */
};

extern _Thread_local struct spw_library_call spw_intercept_library_call
    __attribute__((tls_model("initial-exec")));

/* Notes that the function `real` of row `fn` is called, until spw_intercept_library_end is given
 * the result. */
static inline struct spw_library_call spw_intercept_library_begin(enum spw_fn fn, const void *real)
{
    struct spw_library_call outer = spw_intercept_library_call;

    spw_intercept_library_call = (struct spw_library_call){fn, real};
    return outer;
}

static inline void spw_intercept_library_end(struct spw_library_call outer)
{
    spw_intercept_library_call = outer;
}

/* The function that the call at `caller` would have reached; NULL: there is none. */
void *spw_intercept_library_function(enum spw_fn fn, const void *caller);

/* What dlsym gives for a function that some library has at `found`: our entry, or `found` itself
 * where our entry would forward to another copy of the library. */
void *spw_intercept_library_substitute(enum spw_fn fn, void *found);
