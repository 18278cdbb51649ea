/* The program's device code: what compiled programs register when they are loaded, found again by
 * the addresses of its shadows on the host, and loaded into the driver at its first use.
 *
 * Locking: one mutex in library.c, taken inside every function; loading happens under it, so that
 * code is loaded once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

struct simrt_fatbin;

/* Takes note of an image of device code, as the compiler wraps it (not owned, not read before the
 * first use). NULL when memory is short. */
struct simrt_fatbin *simrt_fatbin_register(const void *image);

/* Forgets the image and everything registered with it, and unloads it. Takes NULL. */
void simrt_fatbin_unregister(struct simrt_fatbin *fatbin);

/* Takes note of a kernel or a variable of the image. `host` is its shadow's address, `name` (not
 * owned) its name in the image. What cannot be noted for want of memory is not found later. */
void simrt_kernel_register(struct simrt_fatbin *fatbin, const void *host, const char *name);
void simrt_variable_register(struct simrt_fatbin *fatbin, const void *host, const char *name,
                             size_t size);

/* The same for a managed variable: `*host` becomes its address by simrt_fatbin_load(). */
void simrt_managed_register(struct simrt_fatbin *fatbin, void **host, const char *name,
                            size_t size);

/* Loads the image and fills in the addresses of its managed variables; compiled code asks for it
 * before it touches the first of them. */
cudaError_t simrt_fatbin_load(struct simrt_fatbin *fatbin);

/* The driver's handle of a kernel by its shadow or, as the API allows, by that handle itself. Needs
 * no context. cudaErrorInvalidDeviceFunction when unknown, or what loading reported. */
cudaError_t simrt_kernel_find(const void *kernel, CUkernel *ret_kernel);

/* The same kernel as a function of the current context. */
cudaError_t simrt_function_find(const void *kernel, CUfunction *ret_function);

/* The way back: the shadow of a function or kernel, the handle itself if it has none. */
const void *simrt_function_host(const void *handle);

/* Makes a handle that came from elsewhere known, with the library it belongs to. */
void simrt_kernel_note(CUkernel kernel, CUlibrary library);

/* Forgets all such handles of a library that goes away. */
void simrt_library_forget(CUlibrary library);

/* Address and size of a device variable in the current context. cudaErrorInvalidSymbol. */
cudaError_t simrt_variable_find(const void *symbol, void **ret_address, size_t *ret_size);

/* `size` bytes from `offset` on of a device variable. cudaErrorInvalidSymbol, or
 * cudaErrorInvalidValue when it is not so large. */
cudaError_t simrt_variable_part(const void *symbol, size_t offset, size_t size, char **ret_address);
