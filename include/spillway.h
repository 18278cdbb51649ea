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
#define SPILLWAY_VERSION_MINOR 2

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

/* ---- since version 0.2: what may go to the host, and when ----
 *
 * The three below are hints: a program that gives none runs as well. They answer
 * CUDA_ERROR_NOT_INITIALIZED (3) while CUDA is not in use.
 *
 * A range stands for every live block of the pool that has a byte in it: a pointer from cudaMalloc
 * and the like, or one inside, and the bytes from there. Where the program's own allocator cuts
 * large blocks (PyTorch's native one), all of such a block is meant. What was said of a block ends
 * when it is freed. CUDA_ERROR_INVALID_VALUE (1) when no block is in the range, which is so for
 * whatever passes by the pool. */

/* Marks the beginning of a step, for example of a training iteration. Spillway learns from earlier
 * steps which memory is used when. Without marks it detects steps that allocate the same sizes in
 * the same order. Marks help programs whose steps differ: dynamic shapes, several kinds of steps.
 * Call it from one thread, at the same place in every step. */
int spillway_mark_step(void);

/* With `on` other than 0 the blocks stay where they are now, on the device if they are new or in
 * use: they are never moved to the host, nor back. With 0 that is taken back; what is fixed for
 * another reason (a graph, a policy) stays so. */
int spillway_pin(const void *address, size_t bytes, int on);

/* Blocks of higher priority stay longer on the device when it is full, and come back earlier. 0 is
 * that of every new block. */
int spillway_priority(const void *address, size_t bytes, int priority);

#ifdef __cplusplus
}
#endif

#endif
