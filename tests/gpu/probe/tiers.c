/* One address on two tiers; and access that is taken away. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

static CUresult set_flags(CUdeviceptr address, size_t bytes, CUmemAccess_flags flags)
{
    CUmemAccessDesc access = memory_access();

    access.flags = flags;
    return cuMemSetAccess(address, bytes, &access, 1);
}

/* What set-access to read-only and back costs while nothing uses the memory, and whether a kernel
 * that only reads it meanwhile goes on. The last may leave a context that is of no more use. */
static void show_read_only_cost(CUdeviceptr address, size_t bytes)
{
    const size_t repeat = probe_repeat(200);
    CUdeviceptr copy;
    CUstream stream;
    CUresult result = CUDA_SUCCESS;
    double begin = probe_now();

    for (size_t i = 0; i < repeat; i++) {
        MUST(set_flags(address, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ));
        MUST(set_flags(address, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    }
    probe_time("set-access to read-only and back", (probe_now() - begin) / (double)repeat, "us");

    MUST(cuMemAlloc(&copy, bytes));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < repeat && result == CUDA_SUCCESS; i++) {
        kernels_copy(copy, address, bytes / 4, stream);
        MUST(set_flags(address, bytes,
                       i % 2 == 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                  : CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        result = cuStreamSynchronize(stream);
    }
    probe_note("figure", "a kernel that reads while access changes", "%s", probe_error(result));
    if (result != CUDA_SUCCESS) {
        exit(0);
    }
    probe_verdict(kernels_differ(copy, bytes / 4, 9) == 0, "content that was read meanwhile", "");
    MUST(cuMemFree(copy));
}

static void write_read_only(CUdeviceptr address, size_t words)
{
    kernels_fill(address, words, 10, NULL);
    CUresult result = cuCtxSynchronize();

    probe_note("figure", "a kernel writes to read-only memory", "%s", probe_error(result));
    if (result == CUDA_SUCCESS) {
        probe_note("figure", "words changed in read-only memory", "%zu",
                   words - (size_t)kernels_differ(address, words, 10));
    }
}

void section_read_only(const char *argument)
{
    const size_t bytes = 32 * MIB;
    CUdeviceptr address = memory_new(ON_DEVICE, bytes);

    kernels_fill(address, bytes / 4, 9, NULL);
    MUST(cuCtxSynchronize());
    if (argument != NULL && strcmp(argument, "cost") == 0) {
        show_read_only_cost(address, bytes);
        return;
    }
    CUresult result = set_flags(address, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ);
    probe_note("figure", "set-access to read-only", "%s", probe_error(result));
    if (result != CUDA_SUCCESS) {
        return;
    }
    if (argument == NULL || strcmp(argument, "write") != 0) {
        probe_verdict(kernels_differ(address, bytes / 4, 9) == 0, "a kernel reads read-only memory",
                      "");
        result = cuMemsetD32(address, 11, bytes / 4);
        probe_note("figure", "memset of read-only memory", "%s", probe_error(result));
        return;
    }
    write_read_only(address, bytes / 4);
    exit(0); /* the context is of no more use */
}

static void show_answers(CUdeviceptr address)
{
    unsigned int type = 0;
    CUdeviceptr base = 0;
    size_t size = 0;
    CUipcMemHandle handle;
    CUresult result = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);

    probe_note("figure", "memory type of an address on the host (1 host, 2 device)", "%u %s", type,
               probe_error(result));
    result = cuMemGetAddressRange(&base, &size, address + 4096);
    probe_note("figure", "address range of an address inside a mapping",
               "%s, offset %lld, size %zu", probe_error(result), (long long)(base - address), size);
    probe_note("figure", "legacy IPC handle of a mapping", "%s",
               probe_error(cuIpcGetMemHandle(&handle, address)));
}

static void check(CUdeviceptr address, size_t bytes, uint32_t value, const char *subject)
{
    char detail[64];
    uint64_t wrong = kernels_differ(address, bytes / 4, value);

    snprintf(detail, sizeof(detail), "%llu words differ", (unsigned long long)wrong);
    probe_verdict(wrong == 0, subject, detail);
}

static void swap(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle chunk)
{
    MUST(cuMemUnmap(address, bytes));
    memory_map(address, bytes, chunk);
    memory_allow(address, bytes);
}

void section_tiers(const char *argument)
{
    const size_t bytes = probe.tiny ? 16 * MIB : 256 * MIB;

    if (!memory_find_host()) {
        return;
    }
    CUmemGenericAllocationHandle on_device = memory_create(ON_DEVICE, bytes);
    CUmemGenericAllocationHandle on_host = memory_create(ON_HOST, bytes);
    CUdeviceptr address = memory_reserve(bytes);
    CUdeviceptr second = memory_reserve(bytes);

    memory_map(address, bytes, on_device);
    memory_allow(address, bytes);
    memory_map(second, bytes, on_host);
    memory_allow(second, bytes);
    kernels_fill(address, bytes / 4, 7, NULL);
    MUST(cuMemcpyDtoD(second, address, bytes));
    MUST(cuCtxSynchronize());
    MUST(cuMemUnmap(second, bytes));
    swap(address, bytes, on_host);
    check(address, bytes, 7, "content after the spill");
    show_answers(address);
    kernels_add(address, bytes / 4, 2, NULL);
    memory_map(second, bytes, on_device);
    memory_allow(second, bytes);
    MUST(cuMemcpyDtoD(second, address, bytes));
    MUST(cuCtxSynchronize());
    swap(address, bytes, on_device);
    check(address, bytes, 9, "content after the promotion");
    kernels_fill(second, bytes / 4, 11, NULL);
    MUST(cuCtxSynchronize());
    check(address, bytes, 11, "a write through a second mapping of one chunk");
    MUST(cuMemUnmap(address, bytes));
    MUST(cuMemUnmap(second, bytes));
}
