/* Managed memory that is moved by prefetches, never more than fits on the card. */
#include <stdio.h>
#include <string.h>

#include "background.h"
#include "system/clock.h"
#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define BYTES      (2 * GIB)
#define SPARE      (3 * GIB) /* of the device beside it, and of the host */
#define CALLS_MAX  512
#define NEW_DRIVER 13000 /* the version of the batch calls */

typedef CUresult (*prefetch_fn)(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                unsigned int flags, CUstream stream);
typedef CUresult (*batch_fn)(CUdeviceptr *addresses, size_t *sizes, size_t count,
                             CUmemLocation *locations, size_t *first, size_t location_count,
                             unsigned long long flags, CUstream stream);
typedef CUresult (*discard_fn)(CUdeviceptr *addresses, size_t *sizes, size_t count,
                               unsigned long long flags, CUstream stream);

enum { OUT = 1, IN = 2, BOTH = OUT | IN };

static struct {
    CUdeviceptr address;
    size_t half; /* the first half goes out while the second comes in */
    CUstream streams[2];
    prefetch_fn prefetch;
    batch_fn prefetch_batch, discard_prefetch;
    discard_fn discard;
} test;

/* Submits `bytes` from `address` on, in pieces, to the device or the host. */
typedef CUresult submit_fn(CUdeviceptr address, size_t bytes, size_t piece, bool in);

static CUmemLocation location(bool in)
{
    CUmemLocation location = {.type = in ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST};

    location.id = in ? probe.device : 0;
    return location;
}

static CUresult submit_calls(CUdeviceptr address, size_t bytes, size_t piece, bool in)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t at = 0; at < bytes && result == CUDA_SUCCESS; at += piece) {
        result = test.prefetch(address + at, piece, location(in), 0, test.streams[in]);
    }
    return result;
}

/* The pieces of a batch. */
static struct {
    CUdeviceptr addresses[CALLS_MAX];
    size_t sizes[CALLS_MAX];
    size_t count;
} pieces;

static void list(CUdeviceptr address, size_t bytes, size_t piece)
{
    pieces.count = 0;
    for (size_t at = 0; at < bytes && pieces.count < CALLS_MAX; at += piece) {
        pieces.addresses[pieces.count] = address + at;
        pieces.sizes[pieces.count++] = piece;
    }
}

static CUresult submit_to(batch_fn batch, CUdeviceptr address, size_t bytes, size_t piece, bool in)
{
    CUmemLocation to = location(in);
    size_t first = 0;

    list(address, bytes, piece);
    return batch(pieces.addresses, pieces.sizes, pieces.count, &to, &first, 1, 0, test.streams[in]);
}

static CUresult submit_batch(CUdeviceptr address, size_t bytes, size_t piece, bool in)
{
    return submit_to(test.prefetch_batch, address, bytes, piece, in);
}

static CUresult submit_discard_prefetch(CUdeviceptr address, size_t bytes, size_t piece, bool in)
{
    return submit_to(test.discard_prefetch, address, bytes, piece, in);
}

static CUresult submit_discard(CUdeviceptr address, size_t bytes, size_t piece, bool in)
{
    list(address, bytes, piece);
    return test.discard(pieces.addresses, pieces.sizes, pieces.count, 0, test.streams[in]);
}

static void wait(void)
{
    MUST(cuStreamSynchronize(test.streams[0]));
    MUST(cuStreamSynchronize(test.streams[1]));
}

static void put(CUdeviceptr address, size_t bytes, bool on_device)
{
    MUST(test.prefetch(address, bytes, location(on_device), 0, test.streams[on_device]));
    wait();
}

static void show(const char *name, const char *what, double value, const char *unit)
{

    probe_measure(value, unit, "%s: %s", name, what);
}

/* What submitting cost. */
struct submitted {
    CUresult result;
    double took, worked; /* microseconds, and those of CPU time */
};

static struct submitted submit(submit_fn *call, size_t piece, int ways)
{
    struct submitted submitted = {.result = CUDA_SUCCESS};
    double begin = probe_now();
    uint64_t worked = spw_clock_read(CLOCK_THREAD_CPUTIME_ID);

    if (ways & OUT) {
        submitted.result = call(test.address, test.half, piece, false);
    }
    if ((ways & IN) && submitted.result == CUDA_SUCCESS) {
        submitted.result = call(test.address + test.half, test.half, piece, true);
    }
    submitted.worked = (double)(spw_clock_read(CLOCK_THREAD_CPUTIME_ID) - worked) / 1e3;
    submitted.took = probe_now() - begin;
    return submitted;
}

/* Moves half of the memory each way that is asked for, from where it is not. */
static void run(const char *what, submit_fn *call, size_t mib, int ways, bool beside)
{
    static const char *const names[] = {"", "out", "in", "both, each way"};
    const size_t piece = mib * MIB < test.half ? mib * MIB : test.half;
    const double parts = (double)(test.half / piece) * (ways == BOTH ? 2 : 1);
    double slower = 0;
    char name[96];

    snprintf(name, sizeof(name), "%s %s by %zu MiB%s", what, names[ways], mib,
             beside ? " beside a kernel" : "");
    put(test.address, test.half, true);
    put(test.address + test.half, test.half, false);
    if (beside) {
        background_begin(ways == BOTH ? 80e3 : 50e3);
    }
    double begin = probe_now();
    struct submitted submitted = submit(call, piece, ways);
    wait();
    double took = probe_now() - begin;
    if (beside) {
        slower = background_end(took);
    }
    if (submitted.result != CUDA_SUCCESS) {
        probe_note("figure", name, "refused: %s", probe_error(submitted.result));
        return;
    }
    show(name, "rate", (double)test.half / took / 1e3, "GB/s");
    show(name, "submission of a piece", submitted.took / parts, "us");
    show(name, "CPU time of a piece", submitted.worked / parts, "us");
    if (beside) {
        show(name, "the kernel, slower", slower, "times");
    }
}

static void run_all(const char *what, submit_fn *call, bool beside_too)
{
    static const size_t sizes[] = {2, 16, 64, 256};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int ways = OUT; ways <= BOTH; ways++) {
            run(what, call, sizes[i], ways, false);
            if (beside_too) {
                run(what, call, sizes[i], ways, true);
            }
        }
    }
}

/* A call that this driver has, or NULL, of which a finding is made. */
static probe_function look_up(const char *name)
{
    void *address = NULL;
    probe_function function;
    CUdriverProcAddressQueryResult status;
    CUresult result = cuGetProcAddress(name, &address, NEW_DRIVER, 0, &status);

    if (result != CUDA_SUCCESS || address == NULL) {
        probe_note("skipped", name, "this driver lacks it: %s", probe_error(result));
        return NULL;
    }
    memcpy(&function, &address, sizeof(function));
    return function;
}

static bool fits(void)
{
    const size_t bytes = probe.tiny ? 64 * MIB : BYTES;
    const size_t spare = probe.tiny ? 0 : SPARE;
    size_t available = 0, total, on_host = memory_kilobytes("/proc/meminfo", "MemAvailable");
    int concurrent = 0;

    cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, probe.device);
    MUST(cuMemGetInfo(&available, &total));
    test.half = bytes / 2;
    if (concurrent == 0) {
        probe_note("skipped", "managed memory", "no concurrent managed access");
    } else if (available < bytes + spare) {
        probe_note("skipped", "managed memory", "%zu MiB are free, %zu MiB are needed",
                   available / MIB, (bytes + spare) / MIB);
    } else if (on_host < bytes + spare) {
        probe_note("skipped", "managed memory", "the host has %zu MiB, %zu MiB are needed",
                   on_host / MIB, (bytes + spare) / MIB);
    } else {
        return true;
    }
    return false;
}

/* Content goes out and in; a discard comes last, since it leaves none. */
static void check_content(void)
{
    const size_t words = 2 * test.half / 4;

    put(test.address, 2 * test.half, false);
    put(test.address, 2 * test.half, true);
    probe_verdict(kernels_differ(test.address, words, 7) == 0, "content after all prefetches", "");
}

void section_managed(const char *argument)
{
    test.prefetch = (prefetch_fn)probe_symbol("cuMemPrefetchAsync_v2");
    if (test.prefetch == NULL) {
        probe_note("skipped", "cuMemPrefetchAsync_v2", "this driver lacks it");
        return;
    }
    background_open();
    if (!fits()) {
        return;
    }
    test.prefetch_batch = (batch_fn)look_up("cuMemPrefetchBatchAsync");
    test.discard_prefetch = (batch_fn)look_up("cuMemDiscardAndPrefetchBatchAsync");
    test.discard = (discard_fn)look_up("cuMemDiscardBatchAsync");
    for (int i = 0; i < 2; i++) {
        MUST(cuStreamCreate(&test.streams[i], CU_STREAM_NON_BLOCKING));
    }
    MUST(cuMemAllocManaged(&test.address, 2 * test.half, CU_MEM_ATTACH_GLOBAL));
    put(test.address, 2 * test.half, true);
    kernels_fill(test.address, 2 * test.half / 4, 7, NULL);
    MUST(cuCtxSynchronize());
    put(test.address, 2 * test.half, false); /* the host's pages are made here, once */
    run_all("prefetch", submit_calls, true);
    if (test.prefetch_batch != NULL) {
        run_all("batch of prefetches", submit_batch, false);
    }
    check_content();
    if (test.discard_prefetch != NULL) {
        run("discard and prefetch", submit_discard_prefetch, 2, IN, false);
        run("discard and prefetch", submit_discard_prefetch, 64, IN, false);
    }
    if (test.discard != NULL) {
        run("discard", submit_discard, 64, OUT, false);
    }
    MUST(cuMemFree(test.address));
    background_close();
}
