#include "sim/runtime/driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

enum simrt_lookup_kind { LOOKUP_DEFAULT, LOOKUP_PTSZ };

/* One lookup: the name and the version that are passed to the driver, and the offset of the result
 * in the table. */
struct simrt_lookup {
    const char *name;
    int version;
    enum simrt_lookup_kind kind;
    size_t offset;
};

static const struct simrt_lookup lookups[] = {
#define SIMRT_FUNCTION(name, version)                                                              \
    {#name, version, LOOKUP_DEFAULT, offsetof(struct simrt_driver, name)},
#define SIMRT_FUNCTION_PAIR(name, version, ptsz)                                                   \
    {#name, version, LOOKUP_DEFAULT, offsetof(struct simrt_driver, name[false])},                  \
        {#name, ptsz, LOOKUP_PTSZ, offsetof(struct simrt_driver, name[true])},
#include "sim/runtime/driver.def"
#undef SIMRT_FUNCTION
#undef SIMRT_FUNCTION_PAIR
};

struct simrt_driver simrt_driver;

/* Replaces a function that the driver lacks. This function is called with arguments, although it
 * declares none. This is safe in the supported calling conventions, because the caller removes the
 * arguments. */
static CUresult driver_too_old(void)
{
    return (CUresult)cudaErrorCallRequiresNewerDriver;
}

static void look_up(const struct simrt_lookup *lookup)
{
    cuuint64_t flags = lookup->kind == LOOKUP_PTSZ ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                                   : CU_GET_PROC_ADDRESS_DEFAULT;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void **slot = (void **)((char *)&simrt_driver + lookup->offset);
    CUresult result = simrt_driver.resolve(lookup->name, slot, lookup->version, flags, &status);

    if (result != CUDA_SUCCESS || *slot == NULL) {
        *(CUresult(**)(void))slot = driver_too_old;
    }
}

cudaError_t simrt_driver_load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        return cudaErrorInsufficientDriver;
    }

    *(void **)&simrt_driver.resolve = dlsym(library, "cuGetProcAddress_v2");
    if (simrt_driver.resolve == NULL) {
        (void)dlclose(library);
        return cudaErrorInsufficientDriver;
    }

    *(void **)&simrt_driver.report_block = dlsym(library, "spillway_sim_block");

    /* NVIDIA's runtime starts with a lookup of "", which must fail without side effects. The
     * simulated runtime does the same, so that tests can check this on an intercepting library. */
    CUdriverProcAddressQueryResult status;
    void *nothing = NULL;
    (void)simrt_driver.resolve("", &nothing, 0, CU_GET_PROC_ADDRESS_DEFAULT, &status);

    for (size_t i = 0; i < sizeof(lookups) / sizeof(lookups[0]); i++) {
        look_up(&lookups[i]);
    }
    return cudaSuccess;
}

CUresult simrt_block_allocated(CUresult result, void *const *address, size_t size)
{
    if (result == CUDA_SUCCESS && simrt_driver.report_block != NULL) {
        simrt_driver.report_block((unsigned long long)(uintptr_t)*address, size);
    }
    return result;
}

void simrt_block_freed(const void *address)
{
    if (address != NULL && simrt_driver.report_block != NULL) {
        simrt_driver.report_block((unsigned long long)(uintptr_t)address, 0);
    }
}
