/* The driver calls that the benchmarks count, where the driver is the simulated one. */
#pragma once

#include <dlfcn.h>
#include <stddef.h>

static const char *const counted[] = {
    "cuMemAlloc",          "cuMemFree",          "cuMemCreate",       "cuMemMap",
    "cuMemSetAccess",      "cuMemUnmap",         "cuMemRelease",      "cuEventRecord",
    "cuEventQuery",        "cuEventSynchronize", "cuStreamWaitEvent", "cuCtxSynchronize",
    "cuStreamSynchronize", "cuCtxGetCurrent",
};

enum { COUNTED = sizeof(counted) / sizeof(counted[0]) };

/* Functions that cost by the chunk. */
static const char *const counted_chunks[] = {
    "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease",
};

enum { COUNTED_CHUNKS = sizeof(counted_chunks) / sizeof(counted_chunks[0]) };

/* Returns the number of calls of a function by any caller. */
typedef unsigned long long counted_calls(const char *name);

/* Returns the number of chunks that these calls covered; *ret_bytes: their bytes. */
typedef unsigned long long counted_covered(const char *name, unsigned long long *ret_bytes);

/* NULL when the driver is not the simulated one. */
static inline counted_calls *counted_find(void)
{
    counted_calls *calls = NULL;

    *(void **)&calls = dlsym(RTLD_DEFAULT, "spillway_sim_calls");
    return calls;
}

static inline counted_covered *counted_find_covered(void)
{
    counted_covered *chunks = NULL;

    *(void **)&chunks = dlsym(RTLD_DEFAULT, "spillway_sim_chunks");
    return chunks;
}
