/* Devices and contexts of the simulated runtime: the current device of a thread, and the primary
 * context of each device, retained once for the process at its first use.
 *
 * Locking: one mutex in context.c guards the table of devices; no function below needs or holds a
 * lock of the caller's. The current device belongs to the calling thread. */
#pragma once

#include <stdbool.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Loads and initialises the driver, once for the process; later calls repeat the answer.
 * cudaErrorInsufficientDriver without a driver, cudaErrorNoDevice without a device. */
cudaError_t simrt_init(void);

/* Devices found; 0 before simrt_init() has succeeded. */
int simrt_device_count(void);

/* The driver's handle of a device by its ordinal. cudaErrorInvalidDevice. */
cudaError_t simrt_device_handle(int ordinal, CUdevice *ret_device);

/* The device the calling thread works on: that of its current context, else the one it chose, else
 * the first. Creates nothing. */
cudaError_t simrt_device_current(int *ret_ordinal);

/* Makes the device the thread's and its primary context current. */
cudaError_t simrt_device_choose(int ordinal);

/* The device of threads that chose none. */
void simrt_device_set_default(int ordinal);

/* Makes sure that the thread has a current context; keeps whatever is current already. */
cudaError_t simrt_context_ensure(void);

/* The primary context of a device, created if need be, not made current. */
cudaError_t simrt_context_primary(int ordinal, CUcontext *ret_context);

/* Destroys the primary context of the thread's device with everything in it. */
cudaError_t simrt_context_reset(void);
