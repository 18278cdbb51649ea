/* The state of PyTorch's native allocator on this thread, set by the code in front of the allocator
 * (torch/). The answer to requests for segments depends on it. */
#pragma once

#include <stdbool.h>

#include "process/caller.h"

enum spw_process_native {
    SPW_NATIVE_UNKNOWN, /* no code is in front of it */
    SPW_NATIVE_CACHES,  /* after a refusal it frees its cache and asks again */
    SPW_NATIVE_PRIVATE, /* for a private pool or in a capture: it does not ask again */
    SPW_NATIVE_REFUSED, /* the program used up the share of memory that it set as its limit: no
                           segment */
};

extern _Thread_local enum spw_process_native spw_process_native
    __attribute__((tls_model("initial-exec")));

/* True if the call under way is the native allocator's, and it is to get no segment. */
static inline bool spw_process_native_is_refused(void)
{
    return SPW_UNLIKELY(spw_process_native == SPW_NATIVE_REFUSED) &&
           spw_process_caller() == SPW_CALLER_PYTORCH;
}
