#include "sim/runtime/library.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/map.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/error.h"

struct simrt_fatbin {
    const void *image;
    CUlibrary library; /* NULL until it is loaded */
    struct simrt_kernel *kernels;
    struct simrt_variable *variables;
};

struct simrt_kernel {
    const void *host; /* NULL for a kernel of a library that the program loaded */
    const char *name;
    struct simrt_fatbin *fatbin; /* NULL for a kernel of such a library */
    CUlibrary library;           /* the library that the program loaded; NULL otherwise */
    CUkernel handle;             /* NULL until its first use */
    struct simrt_kernel *next;
};

struct simrt_variable {
    const void *host;
    const char *name;
    size_t size;
    bool managed;
    struct simrt_fatbin *fatbin;
    struct simrt_variable *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct spw_map kernels;       /* address of a stub -> struct simrt_kernel */
static struct spw_map handles;       /* CUkernel or CUfunction -> struct simrt_kernel */
static struct spw_map variables;     /* address of a shadow -> struct simrt_variable */
static struct simrt_kernel *adopted; /* kernels of libraries that the program loaded */

static uint64_t key_of(const void *address)
{
    return (uint64_t)(uintptr_t)address;
}

struct simrt_fatbin *simrt_fatbin_register(const void *image)
{
    struct simrt_fatbin *fatbin = calloc(1, sizeof(*fatbin));

    if (fatbin != NULL) {
        fatbin->image = image;
    }
    return fatbin;
}

/* Removes a stub or shadow, unless another image has since registered the same address. */
static void remove_shadow(struct spw_map *map, const void *host, const void *value)
{
    if (spw_map_get(map, key_of(host)) == value) {
        (void)spw_map_take(map, key_of(host));
    }
}

static bool belongs_to_fatbin(const void *value, const void *fatbin)
{
    return ((const struct simrt_kernel *)value)->fatbin == fatbin;
}

void simrt_fatbin_unregister(struct simrt_fatbin *fatbin)
{
    if (fatbin == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    spw_map_remove_if(&handles, belongs_to_fatbin, fatbin);
    while (fatbin->kernels != NULL) {
        struct simrt_kernel *kernel = fatbin->kernels;
        fatbin->kernels = kernel->next;
        remove_shadow(&kernels, kernel->host, kernel);
        free(kernel);
    }
    while (fatbin->variables != NULL) {
        struct simrt_variable *variable = fatbin->variables;
        fatbin->variables = variable->next;
        remove_shadow(&variables, variable->host, variable);
        free(variable);
    }
    (void)pthread_mutex_unlock(&lock);

    if (fatbin->library != NULL) {
        (void)simrt_driver.cuLibraryUnload(fatbin->library);
    }
    free(fatbin);
}

void simrt_kernel_register(struct simrt_fatbin *fatbin, const void *host, const char *name)
{
    struct simrt_kernel *kernel = calloc(1, sizeof(*kernel));

    if (kernel == NULL) {
        return;
    }
    *kernel = (struct simrt_kernel){.host = host, .name = name, .fatbin = fatbin};

    (void)pthread_mutex_lock(&lock);
    if (spw_map_put(&kernels, key_of(host), kernel)) {
        kernel->next = fatbin->kernels;
        fatbin->kernels = kernel;
        kernel = NULL;
    }
    (void)pthread_mutex_unlock(&lock);
    free(kernel);
}

static void register_variable(const struct simrt_variable *description)
{
    struct simrt_variable *variable = malloc(sizeof(*variable));

    if (variable == NULL) {
        return;
    }
    *variable = *description;

    (void)pthread_mutex_lock(&lock);
    if (spw_map_put(&variables, key_of(variable->host), variable)) {
        variable->next = variable->fatbin->variables;
        variable->fatbin->variables = variable;
        variable = NULL;
    }
    (void)pthread_mutex_unlock(&lock);
    free(variable);
}

void simrt_variable_register(struct simrt_fatbin *fatbin, const void *host, const char *name,
                             size_t size)
{
    struct simrt_variable variable = {.host = host, .name = name, .size = size, .fatbin = fatbin};

    register_variable(&variable);
}

void simrt_managed_register(struct simrt_fatbin *fatbin, void **host, const char *name, size_t size)
{
    struct simrt_variable variable = {
        .host = host, .name = name, .size = size, .managed = true, .fatbin = fatbin};

    register_variable(&variable);
}

static CUresult fill_managed(const struct simrt_fatbin *fatbin)
{
    for (struct simrt_variable *v = fatbin->variables; v != NULL; v = v->next) {
        CUdeviceptr address;
        size_t size;
        if (!v->managed) {
            continue;
        }
        CUresult result =
            simrt_driver.cuLibraryGetManaged(&address, &size, fatbin->library, v->name);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        *(void **)v->host = (void *)address;
    }
    return CUDA_SUCCESS;
}

/* Loads an image if it is not loaded. The caller holds the lock. After a failure, the next use
 * tries to load the image again. The driver need not copy the image, because the image lives until
 * it is unregistered. */
static CUresult load(struct simrt_fatbin *fatbin)
{
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *value = (void *)1;

    if (fatbin->library != NULL) {
        return CUDA_SUCCESS;
    }
    CUlibrary library;
    CUresult result =
        simrt_driver.cuLibraryLoadData(&library, fatbin->image, NULL, NULL, 0, &option, &value, 1);
    if (result == CUDA_SUCCESS) {
        fatbin->library = library;
    }
    return result;
}

cudaError_t simrt_fatbin_load(struct simrt_fatbin *fatbin)
{
    (void)pthread_mutex_lock(&lock);
    CUresult result = load(fatbin);
    if (result == CUDA_SUCCESS) {
        result = fill_managed(fatbin);
    }
    (void)pthread_mutex_unlock(&lock);
    return simrt_error(result);
}

/* The driver's handle of a registered kernel; called with the lock. */
static cudaError_t handle_of(struct simrt_kernel *kernel)
{
    if (kernel->handle != NULL) {
        return cudaSuccess;
    }
    CUresult result = load(kernel->fatbin);
    if (result != CUDA_SUCCESS) {
        return simrt_error(result);
    }
    CUkernel handle;
    result = simrt_driver.cuLibraryGetKernel(&handle, kernel->fatbin->library, kernel->name);
    if (result == CUDA_ERROR_NOT_FOUND) {
        return cudaErrorInvalidDeviceFunction;
    }
    if (result == CUDA_SUCCESS && !spw_map_put(&handles, key_of(handle), kernel)) {
        return cudaErrorMemoryAllocation;
    }
    if (result == CUDA_SUCCESS) {
        kernel->handle = handle;
    }
    return simrt_error(result);
}

/* Called with the lock. */
static cudaError_t find(const void *key, struct simrt_kernel **ret_kernel)
{
    struct simrt_kernel *kernel = spw_map_get(&kernels, key_of(key));

    if (kernel == NULL) {
        kernel = spw_map_get(&handles, key_of(key));
    }
    if (kernel == NULL) {
        return cudaErrorInvalidDeviceFunction;
    }
    *ret_kernel = kernel;
    return handle_of(kernel);
}

cudaError_t simrt_kernel_find(const void *key, CUkernel *ret_kernel)
{
    struct simrt_kernel *kernel;

    (void)pthread_mutex_lock(&lock);
    cudaError_t error = find(key, &kernel);
    if (error == cudaSuccess) {
        *ret_kernel = kernel->handle;
    }
    (void)pthread_mutex_unlock(&lock);
    return error;
}

cudaError_t simrt_function_find(const void *key, CUfunction *ret_function)
{
    struct simrt_kernel *kernel;
    CUfunction function;

    (void)pthread_mutex_lock(&lock);
    cudaError_t error = find(key, &kernel);
    if (error == cudaSuccess) {
        error = simrt_error(simrt_driver.cuKernelGetFunction(&function, kernel->handle));
    }
    /* A kernel has a different CUfunction in each context; `handles` has all of them. */
    if (error == cudaSuccess && spw_map_get(&handles, key_of(function)) != kernel &&
        !spw_map_put(&handles, key_of(function), kernel)) {
        error = cudaErrorMemoryAllocation;
    }
    if (error == cudaSuccess) {
        *ret_function = function;
    }
    (void)pthread_mutex_unlock(&lock);
    return error;
}

const void *simrt_function_host(const void *handle)
{
    (void)pthread_mutex_lock(&lock);
    const struct simrt_kernel *kernel = spw_map_get(&handles, key_of(handle));
    const void *host = kernel == NULL ? handle : kernel->host;
    if (host == NULL && kernel != NULL) {
        host = kernel->handle;
    }
    (void)pthread_mutex_unlock(&lock);
    return host;
}

void simrt_kernel_adopt(CUkernel handle, CUlibrary library)
{
    struct simrt_kernel *kernel = calloc(1, sizeof(*kernel));

    if (kernel == NULL) {
        return;
    }
    kernel->handle = handle;
    kernel->library = library;

    (void)pthread_mutex_lock(&lock);
    const struct simrt_kernel *known = spw_map_get(&handles, key_of(handle));
    bool is_known = known != NULL && known->handle == handle;
    if (!is_known && spw_map_put(&handles, key_of(handle), kernel)) {
        kernel->next = adopted;
        adopted = kernel;
        kernel = NULL;
    }
    (void)pthread_mutex_unlock(&lock);
    free(kernel);
}

static bool belongs_to_library(const void *value, const void *library)
{
    const struct simrt_kernel *kernel = value;

    return kernel->fatbin == NULL && kernel->library == (CUlibrary)library;
}

void simrt_library_drop_kernels(CUlibrary library)
{
    (void)pthread_mutex_lock(&lock);
    spw_map_remove_if(&handles, belongs_to_library, library);
    for (struct simrt_kernel **link = &adopted; *link != NULL;) {
        struct simrt_kernel *kernel = *link;
        if (belongs_to_library(kernel, library)) {
            *link = kernel->next;
            free(kernel);
        } else {
            link = &kernel->next;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

cudaError_t simrt_variable_find(const void *symbol, void **ret_address, size_t *ret_size)
{
    CUdeviceptr address = 0;
    size_t size = 0;

    (void)pthread_mutex_lock(&lock);
    const struct simrt_variable *variable = spw_map_get(&variables, key_of(symbol));
    if (variable == NULL) {
        (void)pthread_mutex_unlock(&lock);
        return cudaErrorInvalidSymbol;
    }
    CUresult result = load(variable->fatbin);
    if (result == CUDA_SUCCESS) {
        CUlibrary library = variable->fatbin->library;
        result = variable->managed
                     ? simrt_driver.cuLibraryGetManaged(&address, &size, library, variable->name)
                     : simrt_driver.cuLibraryGetGlobal(&address, &size, library, variable->name);
    }
    size_t registered_size = variable->size;
    (void)pthread_mutex_unlock(&lock);

    if (result == CUDA_ERROR_NOT_FOUND || (result == CUDA_SUCCESS && size < registered_size)) {
        return cudaErrorInvalidSymbol;
    }
    if (result != CUDA_SUCCESS) {
        return simrt_error(result);
    }
    *ret_address = (void *)address;
    *ret_size = registered_size;
    return cudaSuccess;
}

cudaError_t simrt_variable_part(const void *symbol, size_t offset, size_t size, char **ret_address)
{
    void *address;
    size_t symbol_size;
    cudaError_t error = simrt_variable_find(symbol, &address, &symbol_size);

    if (error != cudaSuccess) {
        return error;
    }
    if (offset > symbol_size || size > symbol_size - offset) {
        return cudaErrorInvalidValue;
    }
    *ret_address = (char *)address + offset;
    return cudaSuccess;
}
