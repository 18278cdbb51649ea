/* As many chunks as there is memory for: what they cost in time, host memory and mappings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define CHUNKS_MAX 131072
#define SECONDS    60.0 /* a section that has not filled the memory by then stops */
#define FLOOR      (4 * GIB)

static size_t mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    int c;

    while (file != NULL && (c = fgetc(file)) != EOF) {
        lines += c == '\n';
    }
    if (file != NULL) {
        fclose(file);
    }
    return lines;
}

struct filled {
    CUdeviceptr address;
    size_t bytes; /* of a chunk */
    size_t count;
    double took;     /* microseconds */
    CUresult result; /* of the last create */
};

/* Creates and maps chunks until the driver refuses, `most` bytes are reached, time is up, or the
 * host's memory runs low. */
static void fill(struct filled *filled, enum tier tier, CUmemLocationType type, size_t most)
{
    CUmemAllocationProp properties = memory_properties(tier);
    double begin = probe_now();

    properties.location.type = type;
    properties.location.id = type == CU_MEM_LOCATION_TYPE_HOST ? 0 : properties.location.id;
    while (filled->count < most / filled->bytes && filled->count < CHUNKS_MAX &&
           probe_now() - begin < SECONDS * 1e6) {
        CUmemGenericAllocationHandle chunk;
        CUdeviceptr at = filled->address + filled->count * filled->bytes;

        if (tier == ON_HOST && filled->count % 64 == 0 &&
            memory_kilobytes("/proc/meminfo", "MemAvailable") < FLOOR) {
            break;
        }
        filled->result = cuMemCreate(&chunk, filled->bytes, &properties, 0);
        if (filled->result != CUDA_SUCCESS) {
            break;
        }
        filled->result = cuMemMap(at, filled->bytes, 0, chunk, 0);
        if (filled->result != CUDA_SUCCESS) {
            MUST(cuMemRelease(chunk));
            break;
        }
        memory_allow(at, filled->bytes);
        MUST(cuMemRelease(chunk));
        filled->count++;
    }
    filled->took = probe_now() - begin;
}

static void show(const struct filled *filled, size_t maps, size_t resident)
{
    size_t bytes = filled->count * filled->bytes;

    probe_note("figure", "chunks", "%zu of %zu MiB, %.1f GiB, ended by %s", filled->count,
               filled->bytes / MIB, (double)bytes / (double)GIB, probe_error(filled->result));
    probe_note("figure", "mappings of the process", "%zu more", mappings() - maps);
    probe_note("figure", "resident memory of the process", "%zu MiB more",
               (memory_kilobytes("/proc/self/status", "VmRSS") - resident) / MIB);
    probe_note("figure", "MemAvailable after it", "%zu MiB",
               memory_kilobytes("/proc/meminfo", "MemAvailable") / MIB);
    probe_time("to fill", filled->took / 1e6, "s");
    if (filled->count > 0) {
        probe_time("a chunk", filled->took / (double)filled->count, "us");
        kernels_fill(filled->address, filled->bytes / 4, 1, NULL);
        kernels_fill(filled->address + bytes - filled->bytes, filled->bytes / 4, 1, NULL);
        probe_verdict(
            kernels_differ(filled->address + bytes - filled->bytes, filled->bytes / 4, 1) == 0,
            "the last chunk holds content", "");
    }
}

/* The mappings stay: how long the process takes to exit is the caller's measurement. */
void section_fill_card(const char *argument)
{
    struct filled filled = {.bytes = (argument == NULL ? 2 : (size_t)atoi(argument)) * MIB};
    size_t available, total;

    kernels_warm_up();
    MUST(cuMemGetInfo(&available, &total));
    /* More than there is, so that the driver must refuse. */
    available = probe.tiny ? 64 * MIB : available + GIB / 2;
    size_t maps = mappings();
    size_t resident = memory_kilobytes("/proc/self/status", "VmRSS");
    filled.address = memory_reserve((total + GIB) / filled.bytes * filled.bytes);
    fill(&filled, ON_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE, available);
    if (!probe.tiny) {
        /* What the driver can use for a launch, a module, a stream once all is gone. */
        CUmemAllocationProp properties = memory_properties(ON_DEVICE);
        CUmemGenericAllocationHandle chunk;
        CUstream stream = NULL;
        CUresult result = cuMemCreate(&chunk, 2 * MIB, &properties, 0);

        probe_note("figure", "one more chunk of 2 MiB", "%s", probe_error(result));
        result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
        probe_note("figure", "a stream on a full card", "%s", probe_error(result));
    }
    MUST(cuMemGetInfo(&available, &total));
    probe_note("figure", "free after it", "%zu MiB", available / MIB);
    show(&filled, maps, resident);
}

void section_host_chunks(const char *argument)
{
    const char *comma = argument == NULL ? NULL : strchr(argument, ',');
    struct filled filled = {.bytes = (argument == NULL ? 2 : (size_t)atoi(argument)) * MIB};
    size_t most = memory_kilobytes("/proc/meminfo", "MemAvailable") / 2;

    if (!memory_find_host() || filled.bytes == 0) {
        return;
    }
    most = probe.tiny ? 64 * MIB : most > 64 * GIB ? 64 * GIB : most;
    size_t maps = mappings();
    size_t resident = memory_kilobytes("/proc/self/status", "VmRSS");
    if (comma != NULL && strcmp(comma, ",locked") == 0) {
        /* Beside as much page-locked memory of the program. */
        void *memory;
        CUresult result = cuMemHostAlloc(&memory, most / 2, 0);

        probe_note("figure", "page-locked beside it", "%zu MiB: %s", most / 2 / MIB,
                   probe_error(result));
        most /= 2;
    }
    filled.address = memory_reserve(most / filled.bytes * filled.bytes + filled.bytes);
    fill(&filled, ON_HOST,
         comma != NULL && strcmp(comma, ",host") == 0 ? CU_MEM_LOCATION_TYPE_HOST
                                                      : CU_MEM_LOCATION_TYPE_HOST_NUMA,
         most);
    show(&filled, maps, resident);
}
