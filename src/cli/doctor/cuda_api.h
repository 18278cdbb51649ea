/* The functions of the CUDA driver that the doctor calls. The driver is loaded at run time, not
 * linked. No locking; the function pointers may be called from several threads. */
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

/* A location of physical memory: a device, a NUMA node of the host, or the host as a whole. */
struct spw_cli_place {
    CUmemLocationType type;
    int id;
};

/* Load libcuda.so.1, or the library in the file `path`, and look up its functions. On failure, they
 * write the reason and return false. The library stays loaded. */
bool spw_cli_cuda_load(struct spw_cli_cuda *ret_cuda, char *reason, size_t capacity);
bool spw_cli_cuda_load_file(const char *path, struct spw_cli_cuda *ret_cuda, char *reason,
                            size_t capacity);

/* Calls cuInit. If the call fails, writes the reason. */
CUresult spw_cli_cuda_start(const struct spw_cli_cuda *cuda, char *reason, size_t capacity);

/* Returns the name of an error ("CUDA_ERROR_OUT_OF_MEMORY"), in static storage. */
const char *spw_cli_cuda_error(const struct spw_cli_cuda *cuda, CUresult result);

/* Returns the value of a device attribute, or -1 if the driver does not know the attribute. */
int spw_cli_cuda_attribute(const struct spw_cli_cuda *cuda, CUdevice device,
                           CUdevice_attribute attribute);

/* _device returns the place of a device's own memory. _properties returns the properties that
 * cuMemCreate needs to create a chunk at a place. */
struct spw_cli_place spw_cli_place_device(CUdevice device);
CUmemAllocationProp spw_cli_place_properties(struct spw_cli_place place);

/* Returns the size in bytes of the smallest chunk at a place. The result is at least 2 MiB, or 0 if
 * the driver does not report a size. */
size_t spw_cli_place_granule(const struct spw_cli_cuda *cuda, struct spw_cli_place place);

/* A chunk that is mapped into its own address range. */
struct spw_cli_mapped {
    CUdeviceptr address;
    size_t bytes;
    CUmemGenericAllocationHandle chunk;
};

/* Creates a chunk of `bytes` at a place, and maps the chunk for access by `device`. */
CUresult spw_cli_cuda_map(const struct spw_cli_cuda *cuda, CUdevice device,
                          struct spw_cli_place place, size_t bytes,
                          struct spw_cli_mapped *ret_mapped);
void spw_cli_cuda_unmap(const struct spw_cli_cuda *cuda, const struct spw_cli_mapped *mapped);

/* Gives `device` read and write access to a mapped range. */
CUresult spw_cli_cuda_allow(const struct spw_cli_cuda *cuda, CUdevice device, CUdeviceptr address,
                            size_t bytes);
