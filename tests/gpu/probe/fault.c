/* A kernel touches an address where nothing is mapped: which error comes, from which call, when,
 * and what the calls after it say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define BYTES  (2 * MIB)
#define WITHIN 3e6 /* microseconds in which a fault must show */

static struct {
    CUdeviceptr home, alias, other;
    CUmemGenericAllocationHandle chunk;
    CUstream stream;
    CUevent event; /* recorded before the fault */
    const char *kind;
} test;

static void note(const char *what, const char *value)
{
    char subject[96];

    snprintf(subject, sizeof(subject), "%s: %s", test.kind, what);
    probe_note("figure", subject, "%s", value);
}

/* A chunk that is mapped at home and at an alias. */
static void set_up(enum tier tier)
{
    test.chunk = memory_create(tier, BYTES);
    test.home = memory_reserve(BYTES);
    test.alias = memory_reserve(BYTES);
    test.other = memory_new(ON_DEVICE, BYTES);
    memory_map(test.home, BYTES, test.chunk);
    memory_allow(test.home, BYTES);
    memory_map(test.alias, BYTES, test.chunk);
    memory_allow(test.alias, BYTES);
    MUST(cuStreamCreate(&test.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&test.event, CU_EVENT_DISABLE_TIMING));
    kernels_fill(test.home, BYTES / 4, 5, test.stream);
    MUST(cuEventRecord(test.event, test.stream));
    MUST(cuStreamSynchronize(test.stream));
}

static CUresult touch(bool writes)
{
    size_t words = BYTES / 4;
    uint32_t value = 9;
    void *fill[] = {&test.home, &words, &value};
    void *copy[] = {&test.other, &test.home, &words};

    return cuLaunchKernel(kernels_find(writes ? "spw_fill" : "spw_copy"), 64, 1, 1, 256, 1, 1, 0,
                          test.stream, writes ? fill : copy, NULL);
}

/* The call that says it first, and when. */
static CUresult await_error(CUresult launched, double begin)
{
    CUresult result = launched;

    while (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) {
        result = cuStreamQuery(test.stream);
        if (result == CUDA_SUCCESS || probe_now() - begin > WITHIN) {
            break;
        }
    }
    double took = probe_now() - begin;
    note("error", probe_error(result));
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {

        note("seen first at", launched == CUDA_SUCCESS ? "cuStreamQuery" : "cuLaunchKernel");
        probe_measure(took, "us", "%s: seen after", test.kind);
    }
    return result;
}

static CUresult alloc_anew(CUdeviceptr *ret_block)
{
    CUresult result = cuDevicePrimaryCtxRetain(&probe.context, probe.device);

    result = result == CUDA_SUCCESS ? cuCtxSetCurrent(probe.context) : result;
    return result == CUDA_SUCCESS ? cuMemAlloc(ret_block, BYTES) : result;
}

/* What the program meets afterwards, and whether a reset of the context helps. */
static void show_calls_after(void)
{
    CUmemAccessDesc access = memory_access();
    size_t available, total;
    uint32_t word;
    CUdeviceptr block;

    note("then cuEventQuery of an earlier event", probe_error(cuEventQuery(test.event)));
    note("then cuCtxSynchronize", probe_error(cuCtxSynchronize()));
    note("then cuMemGetInfo", probe_error(cuMemGetInfo(&available, &total)));
    note("then cuMemAlloc", probe_error(cuMemAlloc(&block, BYTES)));
    note("then cuMemcpyDtoH of other memory", probe_error(cuMemcpyDtoH(&word, test.other, 4)));
    note("then cuMemMap", probe_error(cuMemMap(test.home, BYTES, 0, test.chunk, 0)));
    note("then cuMemSetAccess", probe_error(cuMemSetAccess(test.home, BYTES, &access, 1)));
    note("then cuLaunchKernel", probe_error(touch(true)));
    note("then cuDevicePrimaryCtxReset", probe_error(cuDevicePrimaryCtxReset(probe.device)));
    note("then memory of a new context", probe_error(alloc_anew(&block)));
}

static void touch_unmapped(bool writes)
{
    double begin = probe_now();
    CUresult result = await_error(touch(writes), begin);
    char subject[96];

    snprintf(subject, sizeof(subject), "%s: it is an error", test.kind);
    probe_verdict(result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY, subject,
                  probe_error(result));
}

/* A kernel polls a word of the chunk while its address is unmapped; the alias ends it. */
static void unmap_beneath(void)
{
    void *params[] = {&test.home};

    MUST(cuMemsetD8(test.alias, 0, BYTES));
    MUST(cuCtxSynchronize());
    MUST(cuLaunchKernel(kernels_find("spw_spin"), 1, 1, 1, 1, 1, 1, 0, test.stream, params, NULL));
    probe_pause(5000);
    double begin = probe_now();
    MUST(cuMemUnmap(test.home, BYTES));
    if (await_error(CUDA_SUCCESS, begin) == CUDA_ERROR_NOT_READY) {
        CUstream second;

        MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
        MUST(cuMemsetD8Async(test.alias, 1, BYTES, second));
        note("ended through the alias", probe_error(cuStreamSynchronize(test.stream)));
    }
}

/* read or write, and what of the chunk: unmapped, evicted (its alias is left, on the host), or
 * beneath (unmapped under a kernel that reads it). */
void section_fault(const char *argument)
{
    test.kind = argument == NULL ? "read-unmapped" : argument;
    bool evicted = strstr(test.kind, "evicted") != NULL;

    if (evicted && !memory_find_host()) {
        return;
    }
    if (probe.simulated && strcmp(test.kind, "beneath") == 0) {
        probe_time("beneath: seen after", 0, "us"); /* its kernels are not at an address */
        return;
    }
    set_up(evicted ? ON_HOST : ON_DEVICE);
    if (strcmp(test.kind, "beneath") == 0) {
        unmap_beneath();
    } else {
        MUST(cuMemUnmap(test.home, BYTES));
        if (!evicted) {
            MUST(cuMemUnmap(test.alias, BYTES));
        }
        touch_unmapped(strncmp(test.kind, "write", 5) == 0);
    }
    show_calls_after();
    exit(0); /* the context is of no more use */
}
