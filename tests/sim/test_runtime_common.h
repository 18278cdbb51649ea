/* Common to the tests of the simulated runtime.
 *
 * Locking: none; each case runs in a process of its own. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

/* Called by compiled code; NVIDIA declares it for C++ only. */
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **fatbin);
void __cudaUnregisterFatBinary(void **fatbin);
void __cudaRegisterFunction(void **fatbin, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                            int *warp_size);
void __cudaRegisterVar(void **fatbin, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);

#define MIB      (1024 * 1024ul)

#define ok(call) assert_int_equal((call), cudaSuccess)

/* An exported function of the simulated driver; fails the case if there is none. */
void *driver_symbol(const char *name);

/* How often the simulated driver's function of that exported name was called in this process. */
unsigned long long calls(const char *name);

/* True if the primary context of a device exists, by the driver. */
bool primary_is_active(int ordinal);

/* Runs each case in a child, or the one named `only` if it is not NULL; returns how many failed.
 * The caller's process must not have initialised CUDA: every case meets it afresh. */
int run_cases(const struct CMUnitTest *cases, size_t count, const char *only);
