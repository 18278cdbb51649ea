/* The device code of a compiled program. A program registers images, kernels and variables when it
 * is loaded. A kernel is found by the host address of its stub, a variable by the host address of
 * its shadow. The driver loads both when they are first used.
 *
 * Locking: every function takes a mutex in library.c. Code is loaded under this mutex, so it is
 * loaded only once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

struct simrt_fatbin;

/* Registers an image of device code. `image` is the wrapper that the compiler puts around the
 * image. The image is not copied, and is not read before its first use. NULL if host memory is
 * exhausted. */
struct simrt_fatbin *simrt_fatbin_register(const void *image);

/* Unloads the image and removes everything registered with it. NULL is ignored. */
void simrt_fatbin_unregister(struct simrt_fatbin *fatbin);

/* Registers a kernel or a variable of the image. `host`: the address of its stub or shadow; `name`
 * (not copied): its name in the image; `size`: its bytes. If host memory is exhausted, nothing is
 * registered, and later lookups fail. */
void simrt_kernel_register(struct simrt_fatbin *fatbin, const void *host, const char *name);
void simrt_variable_register(struct simrt_fatbin *fatbin, const void *host, const char *name,
                             size_t size);

/* Registers a managed variable; simrt_fatbin_load() stores its address in `*host`. */
void simrt_managed_register(struct simrt_fatbin *fatbin, void **host, const char *name,
                            size_t size);

/* Loads the image and stores the addresses of its managed variables. Compiled code calls this
 * before it uses the first managed variable. */
cudaError_t simrt_fatbin_load(struct simrt_fatbin *fatbin);

/* Finds the driver's handle of a kernel by the address of its stub or, as the API allows, by the
 * handle itself. Needs no context. cudaErrorInvalidDeviceFunction for an unknown kernel, or the
 * error with which its image failed to load. */
cudaError_t simrt_kernel_find(const void *kernel, CUkernel *ret_kernel);

/* Finds a kernel as a function of the current context. Errors as above. */
cudaError_t simrt_function_find(const void *kernel, CUfunction *ret_function);

/* The address of a kernel's stub, given its CUfunction or CUkernel. Returns the handle itself if
 * the kernel has no stub. */
const void *simrt_function_host(const void *handle);

/* Registers the handle of a kernel of a library that the program loaded itself. */
void simrt_kernel_adopt(CUkernel kernel, CUlibrary library);

/* Removes the kernels of a library that the program unloads. */
void simrt_library_drop_kernels(CUlibrary library);

/* The address and size in bytes of a device variable in the current context. cudaErrorInvalidSymbol
 * for an unknown variable, or the error with which its image failed to load. */
cudaError_t simrt_variable_find(const void *symbol, void **ret_address, size_t *ret_size);

/* The address of `size` bytes at `offset` in a device variable. Errors: cudaErrorInvalidValue for a
 * range outside of the variable; those of simrt_variable_find(). */
cudaError_t simrt_variable_part(const void *symbol, size_t offset, size_t size, char **ret_address);
