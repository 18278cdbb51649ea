/* The cost of the driver's calls, by size and by number of chunks. */
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "sections.h"

#define REPEAT     15
#define STEPS      6
#define CHUNKS_MAX 512

static const char *const steps[STEPS] = {"reserve",    "create", "map",
                                         "set access", "unmap",  "release"};

static void show_size(enum tier tier, size_t bytes)
{
    static double times[STEPS][REPEAT];
    const size_t repeat = probe_repeat(REPEAT);
    char subject[96];

    for (size_t i = 0; i < repeat; i++) {
        double at[STEPS + 1];

        at[0] = probe_now();
        CUdeviceptr address = memory_reserve(bytes);
        at[1] = probe_now();
        CUmemGenericAllocationHandle chunk = memory_create(tier, bytes);
        at[2] = probe_now();
        memory_map(address, bytes, chunk);
        at[3] = probe_now();
        memory_allow(address, bytes);
        at[4] = probe_now();
        MUST(cuMemUnmap(address, bytes));
        at[5] = probe_now();
        MUST(cuMemRelease(chunk));
        at[6] = probe_now();
        MUST(cuMemAddressFree(address, bytes));
        for (size_t step = 0; step < STEPS; step++) {
            times[step][i] = at[step + 1] - at[step];
        }
    }
    for (size_t step = 0; step < STEPS; step++) {
        snprintf(subject, sizeof(subject), "%s chunk of %zu MiB: %s", memory_tier(tier),
                 bytes / MIB, steps[step]);
        probe_time(subject, probe_median(times[step], repeat), "us");
    }
}

void section_primitives(const char *argument)
{
    static const size_t sizes[] = {2, 4, 16, 32, 64, 256, 1024};
    enum tier tier = argument == NULL || strcmp(argument, "device") == 0 ? ON_DEVICE : ON_HOST;

    if (tier == ON_HOST &&
        !(strcmp(argument, "host") == 0 ? memory_find_host() : memory_find_host_at(argument))) {
        return;
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i] <= (probe.tiny ? 16 : tier == ON_HOST ? 256 : 1024)) {
            show_size(tier, sizes[i] * MIB);
        }
    }
}

/* One range of chunks that are mapped, made accessible and unmapped, at once and one by one. */
struct ranges {
    CUdeviceptr address;
    CUmemGenericAllocationHandle chunks[CHUNKS_MAX];
    double map[7], allow_once[7], allow_each[7], unmap_once[7], unmap_each[7];
    CUresult once; /* of one unmap over several mappings */
};

static void map_all(struct ranges *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memory_map(ranges->address + i * 2 * MIB, 2 * MIB, ranges->chunks[i]);
    }
}

static double unmap_each(struct ranges *ranges, size_t count)
{
    double begin = probe_now();

    for (size_t i = 0; i < count; i++) {
        MUST(cuMemUnmap(ranges->address + i * 2 * MIB, 2 * MIB));
    }
    return probe_now() - begin;
}

static void measure_once(struct ranges *ranges, size_t count, size_t turn)
{
    double begin = probe_now();

    map_all(ranges, count);
    ranges->map[turn] = probe_now() - begin;
    begin = probe_now();
    memory_allow(ranges->address, count * 2 * MIB);
    ranges->allow_once[turn] = probe_now() - begin;
    begin = probe_now();
    ranges->once = cuMemUnmap(ranges->address, count * 2 * MIB);
    ranges->unmap_once[turn] = probe_now() - begin;
    if (ranges->once != CUDA_SUCCESS) {
        unmap_each(ranges, count);
    }
    map_all(ranges, count);
    begin = probe_now();
    for (size_t i = 0; i < count; i++) {
        memory_allow(ranges->address + i * 2 * MIB, 2 * MIB);
    }
    ranges->allow_each[turn] = probe_now() - begin;
    ranges->unmap_each[turn] = unmap_each(ranges, count);
}

static void show_count(struct ranges *ranges, const char *tiers, size_t count)
{
    const size_t repeat = probe_repeat(7);
    char subject[96];

    for (size_t turn = 0; turn < repeat; turn++) {
        measure_once(ranges, count, turn);
    }
    const struct {
        const char *name;
        double *times;
    } rows[] = {{"map each", ranges->map},
                {"set access once", ranges->allow_once},
                {"set access each", ranges->allow_each},
                {"unmap once", ranges->unmap_once},
                {"unmap each", ranges->unmap_each}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(subject, sizeof(subject), "%s, %zu chunks: %s", tiers, count, rows[i].name);
        probe_time(subject, probe_median(rows[i].times, repeat), "us");
    }
    snprintf(subject, sizeof(subject), "%s, %zu chunks: one unmap", tiers, count);
    probe_note("figure", subject, "%s", probe_error(ranges->once));
}

void section_ranges(const char *argument)
{
    static const size_t counts[] = {1, 4, 16, 64, 256, CHUNKS_MAX};
    static struct ranges ranges;
    const char *tiers = argument == NULL ? "device" : argument;
    const size_t most = probe.tiny ? 16 : CHUNKS_MAX;

    if (strcmp(tiers, "device") != 0 && !memory_find_host()) {
        return;
    }
    ranges.address = memory_reserve(most * 2 * MIB);
    for (size_t i = 0; i < most; i++) {
        bool host = strcmp(tiers, "host") == 0 || (strcmp(tiers, "mixed") == 0 && i % 2 == 1);

        ranges.chunks[i] = memory_create(host ? ON_HOST : ON_DEVICE, 2 * MIB);
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && counts[i] <= most; i++) {
        show_count(&ranges, tiers, counts[i]);
    }
}
