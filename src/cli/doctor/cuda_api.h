/* The functions of the CUDA driver that the doctor calls. The driver is loaded, not linked. No
 * locking; the function pointers may be called from several threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_api.h"

struct spw_cli_cuda {
    void *library;
    bool simulated; /* the project's own simulated GPU */
#define SPW_CLI_CUDA(symbol) __typeof__(symbol) *symbol;
#include "cli/doctor/cuda_api.def"
#undef SPW_CLI_CUDA
};

/* A location of physical memory: a device, a NUMA node of the host, or the host. */
struct spw_cli_place {
    CUmemLocationType type;
    int id;
};

/* Load libcuda.so.1, or the library in the file `path`, and look up its functions. On failure
 * return false and write the reason. The library stays loaded. */
bool spw_cli_cuda_load(struct spw_cli_cuda *ret_cuda, char *reason, size_t capacity);
bool spw_cli_cuda_load_file(const char *path, struct spw_cli_cuda *ret_cuda, char *reason,
                            size_t capacity);

/* Calls cuInit, and writes the reason if it does not succeed. */
CUresult spw_cli_cuda_start(const struct spw_cli_cuda *cuda, char *reason, size_t capacity);

/* The name of an error ("CUDA_ERROR_OUT_OF_MEMORY"); static storage. */
const char *spw_cli_cuda_error(const struct spw_cli_cuda *cuda, CUresult result);

/* The value of a device attribute, or -1 when the driver does not know it. */
int spw_cli_cuda_attribute(const struct spw_cli_cuda *cuda, CUdevice device,
                           CUdevice_attribute attribute);

/* The place of a device's own memory, and the properties with which cuMemCreate makes a chunk at a
 * place. */
struct spw_cli_place spw_cli_place_device(CUdevice device);
CUmemAllocationProp spw_cli_place_properties(struct spw_cli_place place);

/* The size of the smallest chunk at a place in bytes, at least 2 MiB; 0 when the driver reports
 * none. */
size_t spw_cli_place_granule(const struct spw_cli_cuda *cuda, struct spw_cli_place place);

/* A chunk that is mapped into a range of its own. */
struct spw_cli_mapped {
    CUdeviceptr address;
    size_t bytes;
    CUmemGenericAllocationHandle chunk;
};

/* Makes a chunk of `bytes` at a place, and maps it for `device`. */
CUresult spw_cli_cuda_map(const struct spw_cli_cuda *cuda, CUdevice device,
                          struct spw_cli_place place, size_t bytes,
                          struct spw_cli_mapped *ret_mapped);
void spw_cli_cuda_unmap(const struct spw_cli_cuda *cuda, const struct spw_cli_mapped *mapped);

/* Gives `device` read and write access to a mapped range. */
CUresult spw_cli_cuda_allow(const struct spw_cli_cuda *cuda, CUdevice device, CUdeviceptr address,
                            size_t bytes);
