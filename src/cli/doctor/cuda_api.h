/* The CUDA driver as the doctor sees it: loaded, never linked. Single-threaded, but for what a
 * thread calls through the pointers. */
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

/* A place where physical memory can be, as the driver names it. */
struct spw_cli_place {
    CUmemLocationType type;
    int id;
};

/* Loads libcuda.so.1, takes its functions and initialises it. False, with the reason in words. */
bool spw_cli_cuda_open(struct spw_cli_cuda *ret_cuda, char *reason, size_t capacity);

/* The name of an error ("CUDA_ERROR_OUT_OF_MEMORY"); static storage. */
const char *spw_cli_cuda_error(const struct spw_cli_cuda *cuda, CUresult result);

/* A device attribute; -1 when the driver does not know it. */
int spw_cli_cuda_attribute(const struct spw_cli_cuda *cuda, CUdevice device,
                           CUdevice_attribute attribute);

/* The device's own memory, and the host memory near it. */
struct spw_cli_place spw_cli_place_device(CUdevice device);
struct spw_cli_place spw_cli_place_host(const struct spw_cli_cuda *cuda, CUdevice device);

/* What cuMemCreate is told to create at a place. */
CUmemAllocationProp spw_cli_place_properties(struct spw_cli_place place);

/* The smallest chunk at a place, at least 2 MiB; 0 when the driver has none there. */
size_t spw_cli_place_granule(const struct spw_cli_cuda *cuda, struct spw_cli_place place);

/* Gives `device` access to a mapped range. */
CUresult spw_cli_cuda_allow(const struct spw_cli_cuda *cuda, CUdevice device, CUdeviceptr address,
                            size_t bytes);
