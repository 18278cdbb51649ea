#include "cli/doctor/tables.h"

#include <stdio.h>
#include <string.h>

enum { PINNED_BYTES = 2 << 20 };

enum { PATTERN_BYTES = 4096 };

/* Fills bytes with a pattern that new memory does not contain by chance. */
static void fill_pattern(unsigned char *bytes)
{
    for (int i = 0; i < PATTERN_BYTES; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 256 + 1);
    }
}

static CUresult use(const struct spw_cli_cuda *cuda, CUdeviceptr address, size_t bytes,
                    const char **ret_step)
{
    unsigned char written[PATTERN_BYTES];
    unsigned char read[PATTERN_BYTES] = {0};
    CUdeviceptr last = address + bytes - PATTERN_BYTES;
    CUresult result;

    fill_pattern(written);
    *ret_step = "cuMemcpyHtoD";
    result = cuda->cuMemcpyHtoD_v2(last, written, sizeof(written));
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *ret_step = "cuMemcpyDtoH";
    result = cuda->cuMemcpyDtoH_v2(read, last, sizeof(read));
    if (result == CUDA_SUCCESS && memcmp(written, read, sizeof(read)) != 0) {
        *ret_step = "the content that was read is not what was written";
    } else if (result == CUDA_SUCCESS) {
        *ret_step = NULL;
    }
    return result;
}

/* Maps one chunk, uses it and unmaps it. *ret_step is the call that failed; NULL: none. */
static CUresult map_and_use(const struct spw_cli_cuda *cuda, CUdevice device, CUdeviceptr address,
                            size_t bytes, CUmemGenericAllocationHandle chunk, const char **ret_step)
{
    CUresult result;
    CUresult unmapped;

    *ret_step = "cuMemMap";
    result = cuda->cuMemMap(address, bytes, 0, chunk, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *ret_step = "cuMemSetAccess";
    result = spw_cli_cuda_allow(cuda, device, address, bytes);
    if (result == CUDA_SUCCESS) {
        result = use(cuda, address, bytes, ret_step);
    }
    unmapped = cuda->cuMemUnmap(address, bytes);
    if (*ret_step == NULL && unmapped != CUDA_SUCCESS) {
        *ret_step = "cuMemUnmap";
        return unmapped;
    }
    return result;
}

static CUresult try_chunk(const struct spw_cli_cuda *cuda, CUdevice device,
                          struct spw_cli_place place, size_t bytes, const char **ret_step)
{
    CUmemAllocationProp properties = spw_cli_place_properties(place);
    CUmemGenericAllocationHandle chunk;
    CUdeviceptr address;
    CUresult result;

    *ret_step = "cuMemCreate";
    result = cuda->cuMemCreate(&chunk, bytes, &properties, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *ret_step = "cuMemAddressReserve";
    result = cuda->cuMemAddressReserve(&address, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS) {
        result = map_and_use(cuda, device, address, bytes, chunk, ret_step);
        cuda->cuMemAddressFree(address, bytes);
    }
    cuda->cuMemRelease(chunk);
    return result;
}

bool spw_cli_doctor_probe(const struct spw_cli_cuda *cuda, CUdevice device,
                          struct spw_cli_place place, char *verdict, size_t capacity)
{
    size_t granule = spw_cli_place_granule(cuda, place);
    const char *step;
    CUresult result;

    if (granule == 0) {
        snprintf(verdict, capacity, "no: the driver reports no granularity");
        return false;
    }
    result = try_chunk(cuda, device, place, granule, &step);
    if (step == NULL) {
        snprintf(verdict, capacity, "work%s",
                 place.type == CU_MEM_LOCATION_TYPE_DEVICE ? "" : " (pinned, by NUMA node)");
        return true;
    }
    if (result == CUDA_SUCCESS) {
        snprintf(verdict, capacity, "no: %s", step);
    } else {
        snprintf(verdict, capacity, "no: %s: %s", step, spw_cli_cuda_error(cuda, result));
    }
    return false;
}

static CUresult try_pinned(const struct spw_cli_cuda *cuda, const char **ret_step)
{
    CUdeviceptr address;
    CUresult result;
    void *memory;

    *ret_step = "cuMemHostAlloc";
    result = cuda->cuMemHostAlloc(&memory, PINNED_BYTES,
                                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *ret_step = "cuMemHostGetDevicePointer";
    result = cuda->cuMemHostGetDevicePointer_v2(&address, memory, 0);
    if (result == CUDA_SUCCESS) {
        result = use(cuda, address, PINNED_BYTES, ret_step);
    }
    cuda->cuMemFreeHost(memory);
    return result;
}

bool spw_cli_doctor_probe_pinned(const struct spw_cli_cuda *cuda, char *verdict, size_t capacity)
{
    const char *step;
    CUresult result = try_pinned(cuda, &step);

    if (step == NULL) {
        snprintf(verdict, capacity, "works");
    } else {
        snprintf(verdict, capacity, "no: %s: %s", step, spw_cli_cuda_error(cuda, result));
    }
    return step == NULL;
}
