/* The state of PyTorch's native allocator on this thread, as the functions in front of the
 * allocator (torch/) set it. The answer to the allocator's requests for segments depends on it. */
#pragma once

#include <stdbool.h>

#include "process/caller.h"

enum spw_process_native {
    SPW_NATIVE_UNKNOWN, /* no function of torch/ is in front of the allocator */
    SPW_NATIVE_CACHES,  /* after a refusal, the allocator frees its cache and repeats the request */
    SPW_NATIVE_PRIVATE, /* the request is for a private pool, or in a capture: the allocator does
                           not repeat it */
    SPW_NATIVE_REFUSED, /* the program has used up the share of memory that it set as its limit: the
                           allocator gets no segment */
};

extern _Thread_local enum spw_process_native spw_process_native
    __attribute__((tls_model("initial-exec")));

/* Returns true if the native allocator makes the current call, and must not get a segment. */
static inline bool spw_process_native_is_refused(void)
{
    return SPW_UNLIKELY(spw_process_native == SPW_NATIVE_REFUSED) &&
           spw_process_caller() == SPW_CALLER_PYTORCH;
}
