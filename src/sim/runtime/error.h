/* The last error of each thread.
 *
 * Locking: none; the last error belongs to the calling thread. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Converts a result of the driver to the runtime's error. Both have the same number. */
static inline cudaError_t simrt_error(CUresult result)
{
    return (cudaError_t)result;
}

/* Sets the thread's last error to `error`, unless `error` is cudaSuccess or the last error is
 * sticky. Returns `error`. */
cudaError_t simrt_error_record(cudaError_t error);

/* Clears the last error of every thread, including sticky errors. Called when the device was reset.
 */
void simrt_error_clear_all(void);
