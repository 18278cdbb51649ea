/* Bandwidth: copies over the link, and kernels that read and write either tier. */
#include <stdio.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

static size_t bytes;

static void show(const char *what, int times, double begin)
{
    double seconds = (probe_now() - begin) / 1e6;

    probe_time(what, (double)bytes * times / seconds / 1e9, "GB/s");
}

static void show_copies(void)
{
    static const char *const names[] = {"copy from page-locked memory to the device",
                                        "copy from the device to page-locked memory",
                                        "copies both ways at once, each way"};
    CUdeviceptr device[2];
    CUstream streams[2];
    void *host[2];

    for (int i = 0; i < 2; i++) {
        MUST(cuMemAlloc(&device[i], bytes));
        MUST(cuMemHostAlloc(&host[i], bytes, 0));
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    for (int ways = 1; ways <= 3; ways++) {
        double begin = 0;

        for (int turn = 0; turn < 5; turn++) {
            if (turn == 1) {
                begin = probe_now();
            }
            if (ways & 1) {
                MUST(cuMemcpyHtoDAsync(device[0], host[0], bytes, streams[0]));
            }
            if (ways & 2) {
                MUST(cuMemcpyDtoHAsync(host[1], device[1], bytes, streams[1]));
            }
            MUST(cuStreamSynchronize(streams[0]));
            MUST(cuStreamSynchronize(streams[1]));
        }
        show(names[ways - 1], 4, begin);
    }
    for (int i = 0; i < 2; i++) {
        MUST(cuMemFree(device[i]));
        MUST(cuMemFreeHost(host[i]));
    }
}

static void show_chunks(CUdeviceptr device, CUdeviceptr host)
{
    const CUdeviceptr pairs[3][2] = {{host, device}, {device, host}, {device, device}};
    static const char *const names[] = {"copy from a device chunk to a host chunk",
                                        "copy from a host chunk to a device chunk",
                                        "copy from a device chunk to itself, half"};

    for (int pair = 0; pair < 3; pair++) {
        size_t part = pair == 2 ? bytes / 2 : bytes;
        CUdeviceptr to = pairs[pair][0] + (pair == 2 ? part : 0);
        double begin = 0;

        for (int turn = 0; turn < 5; turn++) {
            if (turn == 1) {
                begin = probe_now();
            }
            MUST(cuMemcpyDtoDAsync(to, pairs[pair][1], part, NULL));
            MUST(cuCtxSynchronize());
        }
        show(names[pair], 4, begin);
    }
}

static void show_kernels(enum tier tier, CUdeviceptr address)
{
    size_t quads = bytes / 16;
    size_t words = bytes / 4;
    CUdeviceptr sink;
    char subject[64];

    MUST(cuMemAlloc(&sink, 4));
    void *params[] = {&address, &quads, &sink};
    kernels_launch("probe_read", 2048, NULL, params);
    MUST(cuCtxSynchronize());
    double begin = probe_now();
    for (int turn = 0; turn < 4; turn++) {
        kernels_launch("probe_read", 2048, NULL, params);
    }
    MUST(cuCtxSynchronize());
    snprintf(subject, sizeof(subject), "a kernel reads %s chunks", memory_tier(tier));
    show(subject, 4, begin);
    begin = probe_now();
    for (int turn = 0; turn < 4; turn++) {
        kernels_fill(address, words, 1, NULL);
    }
    MUST(cuCtxSynchronize());
    snprintf(subject, sizeof(subject), "a kernel writes %s chunks", memory_tier(tier));
    show(subject, 4, begin);
    begin = probe_now();
    for (int turn = 0; turn < 4; turn++) {
        MUST(cuMemsetD32Async(address, 2, words, NULL));
    }
    MUST(cuCtxSynchronize());
    snprintf(subject, sizeof(subject), "memset of %s chunks", memory_tier(tier));
    show(subject, 4, begin);
    probe_verdict(kernels_differ(address, words, 2) == 0, subject, "content");
}

void section_link(const char *argument)
{
    bytes = probe.tiny ? 16 * MIB : 512 * MIB;
    show_copies();
    CUdeviceptr device = memory_new(ON_DEVICE, bytes);
    show_kernels(ON_DEVICE, device);
    if (!memory_find_host()) {
        return;
    }
    CUdeviceptr host = memory_new(ON_HOST, bytes);
    show_kernels(ON_HOST, host);
    show_chunks(device, host);
}
