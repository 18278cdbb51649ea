/* Common parts of the simulated libraries, which compute nothing. It does not know any of these
 * libraries.
 *
 *   driver   typed pointers to the driver functions that shims call
 *   matrix   memory of a matrix
 *   shim     launches that list the memory of a real kernel
 *
 * Shims stand in for the libraries above the runtime (cuBLAS, cuDNN, ...). A shim launches a kernel
 * whose arguments list the memory that the real kernel would read and write. The kernel changes
 * none of this memory. The simulated driver checks the listed ranges, and a preloaded library that
 * intercepts the driver sees a launch.
 *
 * Locking: thread-safe; a struct sim_shim_work belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "sim/demand.h"

#define SIM_SHIM_EXPORT __attribute__((visibility("default")))

/* Defines another name for a function that is defined earlier in the same file. */
#define SIM_SHIM_SAME(name, of) SIM_SHIM_EXPORT __typeof__(of) name __attribute__((alias(#of)))

/* Maximum number of ranges in one struct sim_shim_work. Further ranges are left out. */
#define SIM_SHIM_RANGES 24

struct sim_shim_range {
    CUdeviceptr address;
    size_t bytes;
    bool written;
};

struct sim_shim_work {
    struct sim_shim_range ranges[SIM_SHIM_RANGES];
    size_t count;
    uint64_t nanoseconds;     /* simulated duration; 0: computed from the bytes */
    struct sim_demand demand; /* on a card; SIM_WORK_NAMED: the bytes of the ranges */
};

/* Adds a range that the kernel reads or writes. NULL and empty ranges are left out. */
void sim_shim_add_read(struct sim_shim_work *work, const void *address, size_t bytes);
void sim_shim_add_write(struct sim_shim_work *work, const void *address, size_t bytes);

/* Launches the work on the stream as kernel `spw_touch_<kernel>`. A bad address does not fail the
 * launch; it fails the context later, as on a GPU. Errors: those of cuLaunchKernel;
 * CUDA_ERROR_NOT_INITIALIZED without a driver. */
CUresult sim_shim_launch(const char *kernel, const struct sim_shim_work *work, CUstream stream);

/* Launches a kernel that really copies 32-bit words between two device addresses. The simulator
 * does not count the copy as a read of results by the host. Errors: as for sim_shim_launch(). */
CUresult sim_shim_copy_words(CUdeviceptr to, CUdeviceptr from, size_t words, CUstream stream);

/* Makes the primary context of the first device current if the calling thread has no context.
 * CUDA_ERROR_NOT_INITIALIZED without a driver. */
CUresult sim_shim_context(void);

/* The major compute capability of the current device; 0 if it cannot be read. */
int sim_shim_capability(void);

/* Allocates device memory for the library itself, even during a capture. Free it with
 * sim_shim_free(). Errors are those of cuMemAlloc. */
CUresult sim_shim_alloc(size_t bytes, void **ret_address);
void sim_shim_free(void *address);

/* Reports on stderr that a function is not simulated, with a hint that may be empty. Reports only
 * once for each `reported`. */
void sim_shim_not_simulated(const char *name, const char *library, const char *hint,
                            bool *reported);

/* The functions that set and get a setting of a library's handle (`field`), and the function that
 * gets the library's version. In every library, 0 means success. */
#define SIM_SHIM_SETTER(name, status, handle_type, type, field, no_handle)                         \
    SIM_SHIM_EXPORT status name(handle_type handle, type value)                                    \
    {                                                                                              \
        if (handle == NULL) {                                                                      \
            return no_handle;                                                                      \
        }                                                                                          \
        handle->field = value;                                                                     \
        return (status)0;                                                                          \
    }

#define SIM_SHIM_GETTER(name, status, handle_type, type, field, no_handle, no_value)               \
    SIM_SHIM_EXPORT status name(handle_type handle, type *value)                                   \
    {                                                                                              \
        if (handle == NULL || value == NULL) {                                                     \
            return handle == NULL ? no_handle : no_value;                                          \
        }                                                                                          \
        *value = handle->field;                                                                    \
        return (status)0;                                                                          \
    }

#define SIM_SHIM_PROPERTY(name, status, invalid, ...)                                              \
    SIM_SHIM_EXPORT status name(libraryPropertyType type, int *value)                              \
    {                                                                                              \
        static const int parts[] = {__VA_ARGS__};                                                  \
        if (value == NULL || (unsigned int)type >= sizeof(parts) / sizeof(parts[0])) {             \
            return invalid;                                                                        \
        }                                                                                          \
        *value = parts[type];                                                                      \
        return (status)0;                                                                          \
    }

/* Defines a case of a switch that returns the names of an enumeration's constants. */
#define SIM_SHIM_NAME(value)                                                                       \
    case value:                                                                                    \
        return #value;
