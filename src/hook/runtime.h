/* The runtime's functions: noted for the thread, forwarded to the runtime that the caller would
 * have reached without us. Nothing is served here: lazy contexts, the last error and the current
 * device stay the runtime's.
 *
 * No locks; what was found is kept, by call site, and the library it is of stays loaded. */
#pragma once

#include "driver/driver.h"

/* What dlsym gives for a function of the runtime that some library has at `found`: our entry, or
 * `found` itself where our entry would forward to another runtime. */
void *spw_runtime_substitute(enum spw_fn fn, void *found);
