#include "cli/doctor/entry_point_child.h"

#include "cli/console/messages.h"
#include "cli/doctor/cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 1 << 20 };

/* A program that is linked with -lcuda gets these symbols from the first library that defines them.
 * This command is not linked with -lcuda. Therefore the symbols are defined by libspillway.so if it
 * is preloaded, and are NULL otherwise. */
__attribute__((weak)) CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize);
__attribute__((weak)) CUresult cuMemFree_v2(CUdeviceptr dptr);

typedef void any_fn(void);
/* The driver's functions. The runtime's functions take and return the same machine words. */
typedef CUresult alloc_fn(CUdeviceptr *ret_address, size_t bytes);
typedef CUresult free_fn(CUdeviceptr address);
typedef CUresult alloc_ordered_fn(CUdeviceptr *ret_address, size_t bytes, CUstream stream);
typedef CUresult free_ordered_fn(CUdeviceptr address, CUstream stream);

const struct spw_cli_entry_point_row spw_cli_entry_points[SPW_CLI_ENTRY_POINT_COUNT] = {
    [SPW_CLI_ENTRY_POINT_EXPORTED] = {"exported", "cuMemAlloc_v2, linked with -lcuda"},
    [SPW_CLI_ENTRY_POINT_DLSYM] = {"dlsym", "cuMemAlloc_v2 by dlsym on libcuda.so.1"},
    [SPW_CLI_ENTRY_POINT_RESOLVER_V1] = {"resolver-v1",
                                         "cuMemAlloc by cuGetProcAddress, as in CUDA 11.3"},
    [SPW_CLI_ENTRY_POINT_RESOLVER_V2] = {"resolver-v2", "cuMemAlloc by cuGetProcAddress_v2"},
    [SPW_CLI_ENTRY_POINT_ORDERED] = {"ordered", "cuMemAllocAsync by cuGetProcAddress_v2"},
    [SPW_CLI_ENTRY_POINT_RUNTIME] = {"runtime", "cudaMalloc of libcudart.so"},
    [SPW_CLI_ENTRY_POINT_RUNTIME_ORDERED] = {"runtime-ordered", "cudaMallocAsync of libcudart.so"},
};

static int report(const char *text)
{
    puts(text);
    return SPW_CLI_EXIT_OK;
}

/* Calls the first version of cuGetProcAddress, as programs built with CUDA 11.3 do. */
static any_fn *resolve_v1(const struct spw_cli_cuda *cuda, const char *base)
{
    __typeof__(cuGetProcAddress) *resolver;
    any_fn *function = NULL;

    *(void **)&resolver = dlsym(cuda->library, "cuGetProcAddress");
    if (resolver == NULL || resolver(base, (void **)&function, 11030, 0) != CUDA_SUCCESS) {
        return NULL;
    }
    return function;
}

static any_fn *resolve_v2(const struct spw_cli_cuda *cuda, const char *base)
{
    __typeof__(cuGetProcAddress_v2) *resolver;
    CUdriverProcAddressQueryResult status;
    any_fn *function = NULL;

    *(void **)&resolver = dlsym(cuda->library, "cuGetProcAddress_v2");
    if (resolver == NULL || resolver(base, (void **)&function, 12000, 0, &status) != CUDA_SUCCESS) {
        return NULL;
    }
    return function;
}

static void *open_runtime(void)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so"};
    void *library = NULL;

    for (size_t i = 0; library == NULL && i < sizeof(names) / sizeof(*names); i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static any_fn *find_in_runtime(const char *name)
{
    void *library = open_runtime();
    any_fn *function = NULL;

    if (library != NULL) {
        *(void **)&function = dlsym(library, name);
    }
    return function;
}

/* Finds the function that allocates or frees, in the same way as a program that uses the entry
 * point. */
static any_fn *look_up(const struct spw_cli_cuda *cuda, enum spw_cli_entry_point entry_point,
                       bool frees)
{
    switch (entry_point) {
    case SPW_CLI_ENTRY_POINT_EXPORTED:
        return frees ? (any_fn *)cuMemFree_v2 : (any_fn *)cuMemAlloc_v2;
    case SPW_CLI_ENTRY_POINT_DLSYM:
        return frees ? (any_fn *)cuda->cuMemFree_v2 : (any_fn *)cuda->cuMemAlloc_v2;
    case SPW_CLI_ENTRY_POINT_RESOLVER_V1:
        return resolve_v1(cuda, frees ? "cuMemFree" : "cuMemAlloc");
    case SPW_CLI_ENTRY_POINT_RESOLVER_V2:
        return resolve_v2(cuda, frees ? "cuMemFree" : "cuMemAlloc");
    case SPW_CLI_ENTRY_POINT_ORDERED:
        return resolve_v2(cuda, frees ? "cuMemFreeAsync" : "cuMemAllocAsync");
    case SPW_CLI_ENTRY_POINT_RUNTIME:
        return find_in_runtime(frees ? "cudaFree" : "cudaMalloc");
    case SPW_CLI_ENTRY_POINT_RUNTIME_ORDERED:
        return find_in_runtime(frees ? "cudaFreeAsync" : "cudaMallocAsync");
    case SPW_CLI_ENTRY_POINT_COUNT:
        break;
    }
    return NULL;
}

static int try_entry_point(const struct spw_cli_cuda *cuda, enum spw_cli_entry_point entry_point)
{
    bool ordered = entry_point == SPW_CLI_ENTRY_POINT_ORDERED ||
                   entry_point == SPW_CLI_ENTRY_POINT_RUNTIME_ORDERED;
    any_fn *allocate = look_up(cuda, entry_point, /* frees */ false);
    any_fn *release = look_up(cuda, entry_point, /* frees */ true);
    CUdeviceptr address = 0;
    CUresult allocated, freed = CUDA_SUCCESS;
    char text[64];

    if (allocate == NULL || release == NULL) {
        return report(SPW_CLI_ENTRY_POINT_ABSENT);
    }
    allocated = ordered ? ((alloc_ordered_fn *)allocate)(&address, BYTES, NULL)
                        : ((alloc_fn *)allocate)(&address, BYTES);
    if (allocated == CUDA_SUCCESS) {
        freed =
            ordered ? ((free_ordered_fn *)release)(address, NULL) : ((free_fn *)release)(address);
    }
    if (ordered && allocated == CUDA_SUCCESS) {
        cuda->cuCtxSynchronize();
    }
    if (allocated == CUDA_SUCCESS && freed == CUDA_SUCCESS) {
        return report("done");
    }
    snprintf(text, sizeof(text), "the allocation returned %d, the free %d", (int)allocated,
             (int)freed);
    return report(text);
}

/* Reports whether a program would call spillway's function. Needs no device. */
static int report_owner(const struct spw_cli_cuda *cuda, enum spw_cli_entry_point entry_point)
{
    any_fn *function = look_up(cuda, entry_point, /* frees */ false);
    bool ours;
    Dl_info info;

    if (function == NULL) {
        return report(SPW_CLI_ENTRY_POINT_ABSENT);
    }
    ours =
        dladdr(*(void **)&function, &info) != 0 && strstr(info.dli_fname, "libspillway.so") != NULL;
    return report(ours ? SPW_CLI_ENTRY_POINT_REACHED : SPW_CLI_ENTRY_POINT_MISSED);
}

int spw_cli_entry_point_child(int argc, char **argv)
{
    struct spw_cli_cuda cuda;
    char reason[256];
    CUcontext context;
    CUdevice device;
    int i = 0;

    while (argc == 2 && i < SPW_CLI_ENTRY_POINT_COUNT &&
           strcmp(argv[1], spw_cli_entry_points[i].word) != 0) {
        i++;
    }
    if (argc != 2 || i == SPW_CLI_ENTRY_POINT_COUNT) {
        spw_cli_complain(argv[0], "only spillway doctor uses this command");
        return SPW_CLI_EXIT_USAGE;
    }
    if (!spw_cli_cuda_load(&cuda, reason, sizeof(reason))) {
        return report(reason);
    }
    if (spw_cli_cuda_start(&cuda, reason, sizeof(reason)) != CUDA_SUCCESS) {
        return report_owner(&cuda, (enum spw_cli_entry_point)i);
    }
    if (cuda.cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuda.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        cuda.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        return report("device 0 has no context");
    }
    return try_entry_point(&cuda, (enum spw_cli_entry_point)i);
}
