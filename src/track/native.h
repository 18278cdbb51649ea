/* What PyTorch's native allocator is doing on this thread, as the code in its place says (torch/):
 * how its requests for segments are to be answered. */
#pragma once

enum spw_track_native {
    SPW_NATIVE_UNKNOWN, /* nothing stands in its place */
    SPW_NATIVE_CACHES,  /* refused, it frees its cache and asks again */
    SPW_NATIVE_PRIVATE, /* for a private pool or in a capture: it does not ask again */
    SPW_NATIVE_REFUSED, /* the program reached the share of the memory that it set: no segment */
};

extern _Thread_local enum spw_track_native spw_track_native
    __attribute__((tls_model("initial-exec")));
