/* Devices and contexts of the simulated runtime: the current device of a thread, and the primary
 * context of each device. The process retains a primary context once, when it is first used.
 *
 * Locking: a mutex in context.c guards the table of devices; callers need no lock. The current
 * device belongs to the calling thread. */
#pragma once

#include <stdbool.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Loads and initialises the driver once for the process; later calls return the same result.
 * cudaErrorInsufficientDriver without a driver, cudaErrorNoDevice without a device. */
cudaError_t simrt_init(void);

/* The number of devices; 0 before simrt_init() has succeeded. */
int simrt_device_count(void);

/* The driver's handle of the device `ordinal`. cudaErrorInvalidDevice if no device has this number.
 */
cudaError_t simrt_device_handle(int ordinal, CUdevice *ret_device);

/* The current device of the calling thread: the device of its current context. If there is no
 * current context, the current device is the device that the thread selected or, if it selected
 * none, the default device. Creates no context. */
cudaError_t simrt_device_current(int *ret_ordinal);

/* Selects a device for the calling thread and makes its primary context current. */
cudaError_t simrt_device_choose(int ordinal);

/* Sets the device of threads that have selected none. */
void simrt_device_set_default(int ordinal);

/* If the thread has no current context, makes the primary context of the thread's device current. A
 * primary context that another thread has reset does not count as a current context. */
cudaError_t simrt_context_ensure(void);

/* The primary context of a device. Retains it if necessary, but does not make it current. The
 * process keeps it; do not release it. */
cudaError_t simrt_context_primary(int ordinal, CUcontext *ret_context);

/* The current context of the calling thread. Errors are the driver's. */
cudaError_t simrt_context_current(CUcontext *ret_context);

/* Resets the primary context of the thread's device, which destroys everything in it. */
cudaError_t simrt_context_reset(void);
