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

/* Returns the number of calls of a function by any caller. */
typedef unsigned long long counted_calls(const char *name);

/* NULL when the driver is not the simulated one. */
static inline counted_calls *counted_find(void)
{
    counted_calls *calls = NULL;

    *(void **)&calls = dlsym(RTLD_DEFAULT, "spillway_sim_calls");
    return calls;
}
