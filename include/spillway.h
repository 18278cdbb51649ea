/* spillway: the public C interface of libspillway.so.
 *
 * A program needs none of this: spillway serves unmodified programs. One that wants to talk to it
 * finds these functions by dlsym(RTLD_DEFAULT, "spillway_version") and so on; when the object is
 * not preloaded they are not there. All functions may be called from any thread and never fail
 * hard: they answer 0 on success and a CUresult number otherwise. */
#ifndef SPILLWAY_H
#define SPILLWAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPILLWAY_VERSION_MAJOR 0
#define SPILLWAY_VERSION_MINOR 1

/* major * 1000 + minor of the preloaded object. */
int spillway_version(void);

/* Figures of one device, in bytes where not said otherwise. `size` is set by the caller to
 * sizeof(struct spillway_stats) and tells an older object how much to fill. */
struct spillway_stats {
    size_t size;
    uint64_t limit_bytes;
    uint64_t live_bytes;
    uint64_t live_peak_bytes;
    uint64_t committed_bytes;
    uint64_t committed_peak_bytes;
    uint64_t host_bytes;
    uint64_t allocs;
    uint64_t frees;
    uint64_t steals;
    uint64_t ooms;
};

/* Fills *stats for device `ordinal`; CUDA_ERROR_INVALID_DEVICE (101) when there is none or CUDA is
 * not in use. */
int spillway_stats(int ordinal, struct spillway_stats *stats);

/* Gives unused device memory back to the driver until at most `keep_bytes` are committed without
 * being held. */
int spillway_trim(int ordinal, size_t keep_bytes);

#ifdef __cplusplus
}
#endif

#endif
