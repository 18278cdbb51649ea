/* Finds the real functions of libraries above the driver: the CUDA runtime, and libraries that
 * register memory (the rows SPW_RUNTIME and SPW_REGISTER of driver/functions.def).
 *
 * A process may have several copies of a library, so the real function depends on the caller. The
 * function is looked up once for each place in the program that calls it. Its library then stays
 * loaded. No locks. */
#pragma once

#include "driver/driver.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns true if a row is a function of such a library, false if it is a function of the
 * driver. */
bool spw_intercept_library_has(enum spw_fn fn);

/* The innermost call that this thread has forwarded to a library and that has not returned yet. */
struct spw_library_call {
    enum spw_fn fn;
    const void *real; /* NULL: there is none */
};

extern _Thread_local struct spw_library_call spw_intercept_library_call
    __attribute__((tls_model("initial-exec")));

/* Records a call of `real`, the function of row `fn`. The caller must pass the result to
 * spw_intercept_library_end. */
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

/* Returns the function that the call with return address `caller` would have reached without
 * spillway; NULL if there is none. */
void *spw_intercept_library_function(enum spw_fn fn, const void *caller);

/* Returns the function that dlsym must return if the real dlsym found `found` for row `fn`. This is
 * spillway's entry, or `found` itself if the entry would forward to another copy of the library. */
void *spw_intercept_library_substitute(enum spw_fn fn, void *found);
