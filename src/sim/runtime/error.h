/* Errors of the simulated runtime: the thread's last error, and what outlives cudaGetLastError().
 *
 * Locking: none; the last error belongs to the calling thread. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* A driver's result as the runtime's error: the numbers are the same. */
static inline cudaError_t simrt_error(CUresult result)
{
    return (cudaError_t)result;
}

/* Remembers `error` as the thread's last error unless it is cudaSuccess; returns it. */
cudaError_t simrt_error_remember(cudaError_t error);

/* Forgets every thread's errors, those too that cudaGetLastError() leaves standing: the device was
 * reset. */
void simrt_error_forget_all(void);
