#include "sim/runtime/entry.h"

#include <stdio.h>

cudaError_t simrt_prepare(enum simrt_need need)
{
    if (need == SIMRT_NOTHING) {
        return cudaSuccess;
    }
    cudaError_t error = simrt_init();
    if (error != cudaSuccess || need == SIMRT_DRIVER) {
        return error;
    }
    return simrt_context_ensure();
}

cudaError_t simrt_not_simulated(const char *name, bool *reported)
{
    if (!__atomic_exchange_n(reported, true, __ATOMIC_RELAXED)) {
        (void)fprintf(
            stderr, "spillway sim: %s is not simulated and returns cudaErrorNotSupported\n", name);
    }
    return simrt_error_record(cudaErrorNotSupported);
}
