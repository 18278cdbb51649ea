#include "cli/doctor/cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>

enum { TWO_MIB = 2 << 20 };

static bool take_functions(struct spw_cli_cuda *cuda, char *reason, size_t capacity)
{
#define SPW_CLI_CUDA(symbol)                                                                       \
    *(void **)&cuda->symbol = dlsym(cuda->library, #symbol);                                       \
    if (cuda->symbol == NULL) {                                                                    \
        snprintf(reason, capacity, "the CUDA driver is too old: it has no %s", #symbol);           \
        return false;                                                                              \
    }
#include "cli/doctor/cuda_api.def"
#undef SPW_CLI_CUDA
    return true;
}

bool spw_cli_cuda_load(struct spw_cli_cuda *ret_cuda, char *reason, size_t capacity)
{
    return spw_cli_cuda_load_file("libcuda.so.1", ret_cuda, reason, capacity);
}

bool spw_cli_cuda_load_file(const char *path, struct spw_cli_cuda *ret_cuda, char *reason,
                            size_t capacity)
{
    struct spw_cli_cuda cuda = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};

    if (cuda.library == NULL) {
        snprintf(reason, capacity, "no CUDA driver (%s)", dlerror());
        return false;
    }
    if (!take_functions(&cuda, reason, capacity)) {
        return false;
    }
    cuda.simulated = dlsym(cuda.library, "spillway_sim_version") != NULL;
    *ret_cuda = cuda;
    return true;
}

CUresult spw_cli_cuda_start(const struct spw_cli_cuda *cuda, char *reason, size_t capacity)
{
    CUresult result = cuda->cuInit(0);

    if (result != CUDA_SUCCESS) {
        snprintf(reason, capacity, "the CUDA driver does not start (cuInit: %s)",
                 spw_cli_cuda_error(cuda, result));
    }
    return result;
}

const char *spw_cli_cuda_error(const struct spw_cli_cuda *cuda, CUresult result)
{
    const char *name = NULL;

    return cuda->cuGetErrorName(result, &name) == CUDA_SUCCESS && name != NULL ? name
                                                                               : "unknown error";
}

int spw_cli_cuda_attribute(const struct spw_cli_cuda *cuda, CUdevice device,
                           CUdevice_attribute attribute)
{
    int value = -1;

    return cuda->cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : -1;
}

struct spw_cli_place spw_cli_place_device(CUdevice device)
{
    return (struct spw_cli_place){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

CUmemAllocationProp spw_cli_place_properties(struct spw_cli_place place)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = place.type, .id = place.id},
    };
}

size_t spw_cli_place_granule(const struct spw_cli_cuda *cuda, struct spw_cli_place place)
{
    CUmemAllocationProp properties = spw_cli_place_properties(place);
    size_t granule = 0;

    if (cuda->cuMemGetAllocationGranularity(&granule, &properties,
                                            CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS) {
        return 0;
    }
    return granule > TWO_MIB ? granule : TWO_MIB;
}

CUresult spw_cli_cuda_allow(const struct spw_cli_cuda *cuda, CUdevice device, CUdeviceptr address,
                            size_t bytes)
{
    CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };

    return cuda->cuMemSetAccess(address, bytes, &access, 1);
}

CUresult spw_cli_cuda_map(const struct spw_cli_cuda *cuda, CUdevice device,
                          struct spw_cli_place place, size_t bytes,
                          struct spw_cli_mapped *ret_mapped)
{
    CUmemAllocationProp properties = spw_cli_place_properties(place);
    struct spw_cli_mapped mapped = {.bytes = bytes};
    CUresult result = cuda->cuMemAddressReserve(&mapped.address, bytes, 0, 0, 0);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = cuda->cuMemCreate(&mapped.chunk, bytes, &properties, 0);
    if (result != CUDA_SUCCESS) {
        goto err_reserve;
    }
    result = cuda->cuMemMap(mapped.address, bytes, 0, mapped.chunk, 0);
    if (result != CUDA_SUCCESS) {
        goto err_create;
    }
    result = spw_cli_cuda_allow(cuda, device, mapped.address, bytes);
    if (result == CUDA_SUCCESS) {
        *ret_mapped = mapped;
        return CUDA_SUCCESS;
    }
    cuda->cuMemUnmap(mapped.address, bytes);
err_create:
    cuda->cuMemRelease(mapped.chunk);
err_reserve:
    cuda->cuMemAddressFree(mapped.address, bytes);
    return result;
}

void spw_cli_cuda_unmap(const struct spw_cli_cuda *cuda, const struct spw_cli_mapped *mapped)
{
    cuda->cuMemUnmap(mapped->address, mapped->bytes);
    cuda->cuMemRelease(mapped->chunk);
    cuda->cuMemAddressFree(mapped->address, mapped->bytes);
}
