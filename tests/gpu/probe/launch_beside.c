/* What launches of one thread cost while another maps memory and sets its access. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define SAMPLES  200000
#define SECONDS  1.5         /* of each case */
#define BYTES    (128 * MIB) /* that are mapped at a time */
#define MAPS_MAX 4096        /* of which times are kept */

/* The thread that launches all the time. */
static struct {
    _Atomic bool stop;
    CUstream stream;
    CUdeviceptr words;
    size_t count;
    double samples[SAMPLES]; /* microseconds of each launch */
} launcher;

static void *launch(void *unused)
{
    MUST(cuCtxSetCurrent(probe.context));
    for (launcher.count = 0; !atomic_load(&launcher.stop) && launcher.count < SAMPLES;) {
        double begin = probe_now();

        kernels_fill(launcher.words, 256, 1, launcher.stream);
        launcher.samples[launcher.count++] = probe_now() - begin;
        if (launcher.count % 64 == 0) {
            MUST(cuStreamSynchronize(launcher.stream));
        }
    }
    return NULL;
}

/* A range whose chunks are mapped and unmapped; without chunks nothing happens. */
struct range {
    CUdeviceptr address;
    size_t bytes, count; /* of a chunk, of chunks */
    CUmemGenericAllocationHandle chunks[BYTES / (2 * MIB)];
    double allow[MAPS_MAX], unmap[MAPS_MAX]; /* microseconds of each turn */
    size_t turns;
};

static void turn(struct range *range)
{
    const size_t kept = range->turns < MAPS_MAX ? range->turns : 0;

    if (range->count == 0) {
        probe_pause(1000);
        return;
    }
    double begin = probe_now();
    for (size_t i = 0; i < range->count; i++) {
        memory_map(range->address + i * range->bytes, range->bytes, range->chunks[i]);
    }
    memory_allow(range->address, BYTES);
    range->allow[kept] = probe_now() - begin;
    begin = probe_now();
    for (size_t i = 0; i < range->count; i++) {
        MUST(cuMemUnmap(range->address + i * range->bytes, range->bytes));
    }
    range->unmap[kept] = probe_now() - begin;
    range->turns++;
}

static void show(const char *beside, struct range *range)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"longest", 1}};
    const size_t turns = range->turns < MAPS_MAX ? range->turns : MAPS_MAX;

    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        probe_measure(probe_quantile(launcher.samples, launcher.count, quantiles[i].share), "us",
                      "launch %s, %s", beside, quantiles[i].name);
    }
    if (range->count > 0) {
        probe_measure(probe_median(range->allow, turns) / (double)range->count, "us",
                      "launch %s: map and set access, a chunk", beside);
        probe_measure(probe_median(range->unmap, turns) / (double)range->count, "us",
                      "launch %s: unmap, a chunk", beside);
    }
}

/* mib: of a chunk; 0: nothing is mapped. */
static void run_case(enum tier tier, size_t mib)
{
    static struct range range;
    const double end = probe_now() + (probe.tiny ? 0.05 : SECONDS) * 1e6;
    char beside[64] = "alone";
    pthread_t thread;

    range = (struct range){.bytes = mib * MIB, .count = mib == 0 ? 0 : BYTES / (mib * MIB)};
    range.address = memory_reserve(BYTES);
    for (size_t i = 0; i < range.count; i++) {
        range.chunks[i] = memory_create(tier, range.bytes);
    }
    atomic_store(&launcher.stop, false);
    if (pthread_create(&thread, NULL, launch, NULL) != 0) {
        probe_note("failed", "pthread_create", "no thread");
        return;
    }
    while (probe_now() < end) {
        turn(&range);
    }
    atomic_store(&launcher.stop, true);
    pthread_join(thread, NULL);
    MUST(cuStreamSynchronize(launcher.stream));
    if (range.count > 0) {
        snprintf(beside, sizeof(beside), "beside %s chunks of %zu MiB", memory_tier(tier), mib);
    }
    show(beside, &range);
    for (size_t i = 0; i < range.count; i++) {
        MUST(cuMemRelease(range.chunks[i]));
    }
    MUST(cuMemAddressFree(range.address, BYTES));
}

void section_launch_beside(const char *argument)
{
    bool host = memory_find_host();

    MUST(cuStreamCreate(&launcher.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&launcher.words, 1024));
    kernels_warm_up();
    run_case(ON_DEVICE, 0);
    for (enum tier tier = ON_DEVICE; tier <= (host ? ON_HOST : ON_DEVICE); tier++) {
        run_case(tier, 2);
        run_case(tier, 64);
    }
}
