/* The public C interface of libspillway.so. It is optional: spillway serves unmodified programs.
 *
 * libspillway.so is preloaded, so programs are not linked with it. They look up the functions with
 * dlsym, which finds none if spillway is not loaded:
 *
 *     #include <dlfcn.h>
 *     #include <spillway.h>
 *
 *     int (*get_stats)(int, struct spillway_stats *) =
 *         (int (*)(int, struct spillway_stats *))dlsym(RTLD_DEFAULT, "spillway_stats");
 *     struct spillway_stats stats = {.size = sizeof(stats)};
 *
 *     if (get_stats != NULL && get_stats(0, &stats) == 0) {
 *         printf("%llu bytes on the host\n", (unsigned long long)stats.host_bytes);
 *     }
 *
 * In Python, to keep a tensor on the device:
 *
 *     import ctypes
 *     spillway = ctypes.CDLL(None)
 *     if hasattr(spillway, "spillway_pin"):
 *         spillway.spillway_pin(ctypes.c_void_p(tensor.data_ptr()),
 *                               ctypes.c_size_t(tensor.nbytes), 1)
 *
 * Threads: every function may be called from any thread, but not from a signal handler.
 * Errors: all functions that return int, except spillway_version, return 0 (CUDA_SUCCESS) or the
 * number of a CUresult. They do not change the last error of the CUDA runtime.
 * Ownership: no function keeps a pointer that it gets. */
#ifndef SPILLWAY_H
#define SPILLWAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPILLWAY_VERSION_MAJOR 0
#define SPILLWAY_VERSION_MINOR 2

/* The version of the preloaded object: major * 1000 + minor. */
int spillway_version(void);

/* Statistics of one device in this process. Later versions append members. */
struct spillway_stats {
    size_t size;                   /* set by the caller to sizeof(struct spillway_stats) */
    uint64_t limit_bytes;          /* the most device memory that may be committed */
    uint64_t live_bytes;           /* blocks that the program holds, on the device or the host */
    uint64_t live_peak_bytes;      /* highest live_bytes */
    uint64_t committed_bytes;      /* device memory that the pool has taken, free parts included */
    uint64_t committed_peak_bytes; /* highest committed_bytes */
    uint64_t host_bytes;           /* host memory that spillway has taken for spilled blocks */
    uint64_t allocs;               /* number of allocations from the pool */
    uint64_t frees;                /* number of blocks given back to the pool */
    uint64_t steals;               /* number of free chunks that were mapped at another address */
    uint64_t ooms;                 /* number of allocations that failed with out of memory */
};

/* Fills in *stats for the device `ordinal` of the process, up to stats->size bytes, and sets
 * stats->size to the number of bytes that are filled in. CUDA_ERROR_INVALID_DEVICE (101) if there
 * is no such device, CUDA is not initialised, or spillway is off; CUDA_ERROR_INVALID_VALUE (1) if
 * stats is NULL or stats->size is less than sizeof(size_t). */
int spillway_stats(int ordinal, struct spillway_stats *stats);

/* Gives free device memory of the pool back to the driver, while at least `keep_bytes` bytes stay
 * committed. CUDA_ERROR_INVALID_DEVICE (101) as above. */
int spillway_trim(int ordinal, size_t keep_bytes);

/* ---- All figures, since version 0.3 ----
 *
 * docs/reference/statistics.md explains them. An earlier object lacks these functions. */

/* The name of counter `number`, from 0 on, as in the statistics file. Behind these come the names
 * of the driver functions that spillway calls for itself ("cuMemMap"); their counters are the
 * numbers of calls. NULL behind the last name. */
const char *spillway_counter_name(size_t number);

/* Writes the first `count` counters of the device `ordinal` to `values`, in the order of their
 * names; values behind the last counter are 0. CUDA_ERROR_INVALID_DEVICE (101) as above;
 * CUDA_ERROR_INVALID_VALUE (1) if `values` is NULL. */
int spillway_counters(int ordinal, uint64_t *values, size_t count);

/* A text about this process, which is valid as long as the process lives:
 *
 *     "mode"         the mode
 *     "policy"       the file of the policy in force; "" if there is none
 *     "statistics"   the file of the statistics, written at the end; "" if there is none
 *     "recording"    the file of the recording; "" if there is none
 *     "object"       the file of libspillway.so; "" if its folder is not known
 *
 * NULL for any other name, and, except for "object", if CUDA is not initialised or spillway is
 * off. */
const char *spillway_about(const char *name);

/* Mark the beginning and the end of a part of the program, for example of an evaluation. The
 * recording, if there is one, shows how often a part ran, how long, and how much memory was live.
 * Parts may overlap, on any thread; a part that begins again before its end counts once. Marks take
 * at most 1/8 of the recording; further marks are lost, but counted. `name` is UTF-8 of at most
 * 1024 bytes. CUDA_ERROR_NOT_INITIALIZED (3) if CUDA is not initialised, or spillway is off;
 * CUDA_ERROR_INVALID_VALUE (1) if `name` is NULL. */
int spillway_mark_begin(const char *name);
int spillway_mark_end(const char *name);

/* ---- Pauses, since version 0.3 ----
 *
 * During a pause, a program gives its device memory to another program, or to another part of
 * itself. */

/* Moves all movable device memory of this process to the host, and gives free memory to the driver.
 * Addresses and content do not change. Memory that is used during the pause is read from the host.
 * Waits up to 30 seconds for the devices. CUDA_ERROR_NOT_SUPPORTED (801) if memory cannot move to
 * the host; CUDA_ERROR_NOT_READY (600) if a graph is being captured or a device did not become
 * idle; CUDA_ERROR_NOT_INITIALIZED (3) if CUDA is not initialised, or spillway is off. */
int spillway_pause(void);

/* Like spillway_pause, but move only the memory of a rule of the policy (the first rule of that
 * name), or of a tag. A rule may exist for this purpose alone. CUDA_ERROR_INVALID_VALUE (1) if
 * there is no such rule, or if no memory was ever allocated with that tag. */
int spillway_pause_rule(const char *name);
int spillway_pause_tag(const char *name);

/* Moves all memory back for which the devices have room; other memory comes back later. */
int spillway_resume(void);

/* Move back only the memory of a rule or a tag; other paused memory stays on the host. */
int spillway_resume_rule(const char *name);
int spillway_resume_tag(const char *name);

/* ---- Tags, since version 0.3 ----
 *
 * A tag is a word of the program for the purpose of memory. Pauses, reports and policies (the key
 * tag) use it. */

/* Tags all memory that the calling thread allocates from now on. The tag is valid until the thread
 * sets another tag, or removes it with NULL or "". `name` is UTF-8 of at most 63 bytes without
 * control characters. May be called before CUDA is in use. CUDA_ERROR_INVALID_VALUE (1) for any
 * other name, which changes nothing; CUDA_ERROR_NOT_SUPPORTED (801) if call sites are not recorded
 * (SPILLWAY_SITES=off), so that tags have no effect. */
int spillway_tag(const char *name);

/* ---- Optional hints, since version 0.2 ----
 *
 * Hints select the memory that should be on the device. All return CUDA_ERROR_NOT_INITIALIZED
 * (3) if CUDA is not initialised, or spillway is off.
 *
 * A hint about [address, address + bytes) applies to each live block that has a byte in the
 * range, as a whole. `address` is a device pointer from cudaMalloc or the like, or lies inside such
 * a block. If the program's own allocator splits large blocks, as PyTorch's native one does, the
 * hint applies to the large block. A hint ends when its block is freed. CUDA_ERROR_INVALID_VALUE
 * (1) if the range has no block of spillway's pool. */

/* Marks the beginning of a step, for example of a training iteration. Spillway predicts the uses of
 * memory from earlier steps. Without marks it detects steps that allocate the same sizes in the
 * same order. In programs whose steps differ (dynamic shapes, several kinds of steps) marks reduce
 * the traffic on the link. The key nth_in_step of a policy counts from the last mark. Call it from
 * one thread, at the same place in every step. */
int spillway_mark_step(void);

/* Pins blocks if `on` is not 0: they stay where they are now, on the device or on the host. New
 * blocks and blocks in use are on the device. Unpins them if `on` is 0; blocks that cannot be moved
 * for another reason (a graph, a policy) still cannot. */
int spillway_pin(const void *address, size_t bytes, int on);

/* Sets the priority of blocks. If the device is full, blocks of higher priority stay on it longer
 * and come back earlier. New blocks have priority 0. */
int spillway_priority(const void *address, size_t bytes, int priority);

#ifdef __cplusplus
}
#endif

#endif
