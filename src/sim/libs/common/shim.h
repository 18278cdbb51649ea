/* What the shims of the libraries above the runtime share: their work, which computes nothing, and
 * the driver, which they reach like NVIDIA's libraries do.
 *
 * Work is launched as a kernel that changes nothing but names the memory it reads and writes, so
 * the simulated driver checks it, and whoever stands at the driver's doors sees a launch.
 *
 * Locking: thread-safe; a struct sim_shim_work belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#define SIM_SHIM_EXPORT __attribute__((visibility("default")))

/* Ranges of memory that one piece of work can name. */
#define SIM_SHIM_RANGES 24

struct sim_shim_range {
    CUdeviceptr address;
    size_t bytes;
    bool written;
};

struct sim_shim_work {
    struct sim_shim_range ranges[SIM_SHIM_RANGES];
    size_t count;
    uint64_t nanoseconds; /* that it takes when time is simulated; 0: as long as its bytes */
};

/* Names memory that the work reads or writes; NULL and empty ranges are left out, as is host memory
 * that the device cannot reach. */
void sim_shim_add_read(struct sim_shim_work *work, const void *address, size_t bytes);
void sim_shim_add_write(struct sim_shim_work *work, const void *address, size_t bytes);

/* Launches the work on the stream as kernel `spw_touch_NAME`. As on a GPU, a bad address is no
 * error of the launch; the context fails. Errors are those of cuLaunchKernel, and
 * CUDA_ERROR_NOT_INITIALIZED without a driver. */
CUresult sim_shim_launch(const char *kernel, const struct sim_shim_work *work, CUstream stream);

/* Launches a copy of 32-bit words that has real effects, which nobody takes for the host reading
 * results. Both addresses are the device's. Errors as above. */
CUresult sim_shim_copy_words(CUdeviceptr to, CUdeviceptr from, size_t words, CUstream stream);

/* Makes sure that the calling thread has a context: the primary one of the first device, if none.
 * CUDA_ERROR_NOT_INITIALIZED without a driver. */
CUresult sim_shim_context(void);

/* The compute capability's major number of the current device; 0 if it cannot be reported. */
int sim_shim_capability(void);

/* Device memory of the library's own, as from cuMemAlloc; also while a stream captures. */
CUresult sim_shim_alloc(size_t bytes, void **ret_address);
void sim_shim_free(void *address);

/* Names a function that is not simulated on stderr, once; `reported` is the function's own. */
void sim_shim_not_simulated(const char *name, const char *library, const char *hint,
                            bool *reported);
