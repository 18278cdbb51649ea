/* Set-access on memory that kernels and copies use at that time. */
#include <stdio.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define CHUNKS 32
#define BYTES  (CHUNKS * 2 * MIB)
#define WORDS  (BYTES / 4)
#define AHEAD  64 /* launches that may wait */

/* Keeps a kernel that adds 1 and a copy of it in flight. */
struct load {
    CUdeviceptr range, copy;
    CUstream kernels, copies;
    uint32_t launched;
};

static void push(struct load *load)
{
    if (load->launched % AHEAD == 0) {
        MUST(cuStreamSynchronize(load->kernels));
        MUST(cuStreamSynchronize(load->copies));
    }
    kernels_add(load->range, WORDS, 1, load->kernels);
    MUST(cuMemcpyDtoDAsync(load->copy, load->range, BYTES, load->copies));
    load->launched++;
}

static void grant_again(struct load *load, size_t offset, size_t bytes, const char *subject)
{
    const size_t count = probe_repeat(5000);
    double begin = probe_now();

    for (size_t i = 0; i < count; i++) {
        push(load);
        memory_allow(load->range + offset, bytes);
    }
    probe_time(subject, (probe_now() - begin) / (double)count, "us with two submissions");
    MUST(cuCtxSynchronize());
}

void section_in_use(const char *argument)
{
    static const enum tier tiers[] = {ON_DEVICE, ON_HOST};
    const char *which = argument == NULL ? "device" : argument;
    bool mixed = which[0] == 'm';
    struct load load = {.launched = 0};
    char detail[64];

    if (mixed && !memory_find_host()) {
        return;
    }
    load.range = memory_new_range(tiers, mixed ? 2 : 1, 2 * MIB, CHUNKS);
    MUST(cuMemAlloc(&load.copy, BYTES));
    MUST(cuStreamCreate(&load.kernels, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&load.copies, CU_STREAM_NON_BLOCKING));
    kernels_fill(load.range, WORDS, 0, NULL);
    MUST(cuCtxSynchronize());
    grant_again(&load, 0, BYTES, "set-access of all chunks while in use");
    grant_again(&load, 4 * MIB, 2 * MIB, "set-access of one chunk while in use");
    uint64_t wrong = kernels_differ(load.range, WORDS, load.launched);
    snprintf(detail, sizeof(detail), "%u launches, %llu words wrong", load.launched,
             (unsigned long long)wrong);
    probe_verdict(wrong == 0, "content after set-access on memory in use", detail);
}
