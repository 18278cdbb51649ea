/* Calls beside work of the device: do they wait for it? */
#include <stdio.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define BYTES  (32 * MIB)
#define BUSY   250e3 /* microseconds that the kernel runs, unless it is released */
#define COPY   (256 * MIB)
#define COPIES 24

/* What the calls work on: memory that no queued work names. */
static struct {
    CUstream stream;
    CUdeviceptr range[2];                  /* by tier */
    CUmemGenericAllocationHandle chunk[2]; /* mapped there at first */
    CUmemGenericAllocationHandle other;    /* made meanwhile */
    CUdeviceptr block;
    CUdeviceptr from;
    void *to;
    bool copying; /* the work is copies, not a kernel */
} test;

static void begin_work(void)
{
    if (!test.copying) {
        kernels_spin(test.stream, BUSY);
        return;
    }
    for (int i = 0; i < (probe.tiny ? 2 : COPIES); i++) {
        MUST(cuMemcpyDtoHAsync(test.to, test.from, COPY, test.stream));
    }
    probe_pause(1000);
}

/* True if the work still ran when the call had returned. */
static bool end_work(void)
{
    bool runs = cuStreamQuery(test.stream) == CUDA_ERROR_NOT_READY;

    if (!test.copying) {
        kernels_release(test.stream);
    }
    MUST(cuStreamSynchronize(test.stream));
    MUST(cuCtxSynchronize());
    return runs;
}

static CUresult do_create(void)
{
    CUmemAllocationProp properties = memory_properties(ON_DEVICE);

    return cuMemCreate(&test.other, BYTES, &properties, 0);
}

static CUresult do_unmap_device(void)
{
    return cuMemUnmap(test.range[ON_DEVICE], BYTES);
}

static CUresult do_map_device(void)
{
    return cuMemMap(test.range[ON_DEVICE], BYTES, 0, test.chunk[ON_DEVICE], 0);
}

static CUresult allow(enum tier tier)
{
    CUmemAccessDesc access = memory_access();

    return cuMemSetAccess(test.range[tier], BYTES, &access, 1);
}

static CUresult do_allow_device(void)
{
    return allow(ON_DEVICE);
}

static CUresult do_unmap_host(void)
{
    return cuMemUnmap(test.range[ON_HOST], BYTES);
}

static CUresult do_map_host(void)
{
    return cuMemMap(test.range[ON_HOST], BYTES, 0, test.chunk[ON_HOST], 0);
}

static CUresult do_allow_host(void)
{
    return allow(ON_HOST);
}

static CUresult do_release(void)
{
    return cuMemRelease(test.other);
}

static CUresult do_alloc(void)
{
    return cuMemAlloc(&test.block, BYTES);
}

static CUresult do_free(void)
{
    return cuMemFree(test.block);
}

static CUresult do_alloc_async(void)
{
    CUdeviceptr block;
    CUresult result = cuMemAllocAsync(&block, BYTES, NULL);

    return result == CUDA_SUCCESS ? cuMemFreeAsync(block, NULL) : result;
}

static CUresult do_lock(void)
{
    void *memory;
    CUresult result = cuMemHostAlloc(&memory, BYTES, 0);

    return result == CUDA_SUCCESS ? cuMemFreeHost(memory) : result;
}

static const struct {
    const char *name;
    CUresult (*call)(void);
    bool on_host;
} calls[] = {
    {"cuMemCreate, 32 MiB", do_create, false},
    {"cuMemUnmap, device", do_unmap_device, false},
    {"cuMemMap, device", do_map_device, false},
    {"cuMemSetAccess, device", do_allow_device, false},
    {"cuMemSetAccess again, device", do_allow_device, false},
    {"cuMemUnmap, host", do_unmap_host, true},
    {"cuMemMap, host", do_map_host, true},
    {"cuMemSetAccess, host", do_allow_host, true},
    {"cuMemRelease", do_release, false},
    {"cuMemAlloc, 32 MiB", do_alloc, false},
    {"cuMemFree, 32 MiB", do_free, false},
    {"cuMemAllocAsync and cuMemFreeAsync, NULL stream", do_alloc_async, false},
    {"cuMemHostAlloc and cuMemFreeHost", do_lock, false},
};

static void set_up(void)
{
    for (enum tier tier = ON_DEVICE; tier <= (probe.node < 0 ? ON_DEVICE : ON_HOST); tier++) {
        test.chunk[tier] = memory_create(tier, BYTES);
        test.range[tier] = memory_reserve(BYTES);
        memory_map(test.range[tier], BYTES, test.chunk[tier]);
        memory_allow(test.range[tier], BYTES);
    }
    MUST(cuStreamCreate(&test.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&test.from, COPY));
    MUST(cuMemHostAlloc(&test.to, COPY, 0));
}

static void run_calls(const char *beside)
{
    char subject[128];

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (calls[i].on_host && probe.node < 0) {
            continue;
        }
        begin_work();
        double begin = probe_now();
        CUresult result = calls[i].call();
        double took = probe_now() - begin;
        bool runs = end_work();
        snprintf(subject, sizeof(subject), "%s beside %s: waits", calls[i].name, beside);
        if (result != CUDA_SUCCESS) {
            probe_note("failed", subject, "%s", probe_error(result));
        } else if (probe.simulated && test.copying) {
            probe_note("unmeasurable", subject, "copies of the simulated GPU take no time");
        } else {
            probe_note("figure", subject, "%s", runs ? "no" : "yes");
        }
        snprintf(subject, sizeof(subject), "%s beside %s", calls[i].name, beside);
        probe_time(subject, took, "us");
    }
}

void section_beside_kernel(const char *argument)
{
    memory_find_host();
    set_up();
    run_calls("a kernel");
}

void section_beside_copy(const char *argument)
{
    memory_find_host();
    test.copying = true;
    set_up();
    run_calls("a copy to the host");
}
