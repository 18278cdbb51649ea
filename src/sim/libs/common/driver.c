#include "sim/libs/common/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Any image will do: the simulated driver finds a kernel of every name. */
static const char image[] = ".version 8.0\n.target sm_75\n.address_size 64\n";

static struct sim_shim_driver driver;
static bool complete;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static CUlibrary library;
static CUresult library_result;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static bool look_up(PFN_cuGetProcAddress_v12000 resolve, const char *name, int version,
                    void **ret_function)
{
    CUdriverProcAddressQueryResult status;
    void *function = NULL;

    if (resolve(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS ||
        function == NULL) {
        return false;
    }
    *ret_function = function;
    return true;
}

static void load(void)
{
    PFN_cuGetProcAddress_v12000 resolve = NULL;
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);

    if (handle != NULL) {
        *(void **)&resolve = dlsym(handle, "cuGetProcAddress_v2");
    }
    if (resolve == NULL) {
        return;
    }
    complete = true;
#define SIM_SHIM_FUNCTION(name, version)                                                           \
    complete = look_up(resolve, #name, version, (void **)&driver.name) && complete;
#include "sim/libs/common/driver.def"
#undef SIM_SHIM_FUNCTION
    complete = complete && driver.cuInit(0) == CUDA_SUCCESS;
}

const struct sim_shim_driver *sim_shim_driver(void)
{
    (void)pthread_once(&once, load);
    return complete ? &driver : NULL;
}

void *sim_shim_simulator(const char *name)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);

    return handle != NULL ? dlsym(handle, name) : NULL;
}

static void load_library(void)
{
    library_result = driver.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
}

CUresult sim_shim_kernel(const char *name, CUkernel *ret_kernel)
{
    if (sim_shim_driver() == NULL) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    (void)pthread_once(&library_once, load_library);
    return library_result == CUDA_SUCCESS ? driver.cuLibraryGetKernel(ret_kernel, library, name)
                                          : library_result;
}
