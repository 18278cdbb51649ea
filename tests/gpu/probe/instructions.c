/* Instructions that reach memory in their own way, on device chunks first and then on host chunks:
 * those that fail on both say nothing about the host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

/* All add to one word. That costs the square of their number where an instruction is a loop around
 * the link: with 65,536 threads an H100 did not end in 45 s. */
#define THREADS 512u

/* A word that the kernels have added to, 16 bytes apart, and what it must be. */
struct expected {
    const char *name;
    size_t offset;
    uint64_t bits;
    unsigned int bytes;
};

/* bf16 stops counting where 1 is less than its last place: at 256. */
static const struct expected atomics[] = {
    {"atom.add u32", 0, THREADS, 4},       {"atom.add u64", 16, THREADS, 8},
    {"atom.add f32", 32, 0x44000000, 4},   {"atom.add f64", 48, 0x4080000000000000, 8},
    {"red.add u32", 64, THREADS, 4},       {"red.add u64", 80, THREADS, 8},
    {"red.add f32", 96, 0x44000000, 4},    {"atom.add f16x2", 112, 0x60006000, 4},
    {"atom.max u32", 128, THREADS - 1, 4}, {"atom.cas u32", 144, THREADS, 4},
};

static const struct expected vectors[] = {
    {"atom.add bf16x2", 0, 0x43804380, 4},
    {"red.add bf16x2", 16, 0x43804380, 4},
    {"red.add f32x2", 32, 0x4400000044000000, 8},
};

static void subject_of(char *subject, size_t bytes, const char *name, enum tier tier)
{
    snprintf(subject, bytes, "%s on %s memory", name, memory_tier(tier));
}

static void run_atomics(const char *kernel, const struct expected *rows, size_t count,
                        enum tier tier)
{
    CUdeviceptr address = memory_new(tier, 2 * MIB);
    unsigned char seen[256];
    void *params[] = {&address};
    char subject[96], detail[64];

    MUST(cuMemsetD8(address, 0, sizeof(seen)));
    MUST(cuCtxSynchronize());
    double begin = probe_now();
    kernels_launch(kernel, THREADS / 256, NULL, params);
    MUST(cuCtxSynchronize());
    subject_of(subject, sizeof(subject), kernel, tier);
    probe_time(subject, probe_now() - begin, "us");
    MUST(cuMemcpyDtoH(seen, address, sizeof(seen)));
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;

        memcpy(&value, seen + rows[i].offset, rows[i].bytes);
        subject_of(subject, sizeof(subject), rows[i].name, tier);
        snprintf(detail, sizeof(detail), "%#llx, expected %#llx", (unsigned long long)value,
                 (unsigned long long)rows[i].bits);
        probe_verdict(value == rows[i].bits, subject, detail);
    }
    memory_delete(address, 2 * MIB);
}

static bool same(CUdeviceptr address, const uint32_t *expected, size_t bytes, uint32_t factor)
{
    uint32_t *seen = malloc(bytes);
    bool equal = seen != NULL;

    MUST(cuMemcpyDtoH(seen, address, bytes));
    for (size_t i = 0; i < bytes / 4 && equal; i++) {
        equal = seen[i] == expected[i] * factor;
    }
    free(seen);
    return equal;
}

/* Bulk copies and cp.async: the pattern arrives, and its sum with itself. */
static void run_copies(enum tier tier)
{
    const size_t bytes = 2 * MIB;
    CUdeviceptr src = memory_new(tier, bytes);
    CUdeviceptr dst = memory_new(tier, bytes);
    CUdeviceptr sum = memory_new(tier, bytes);
    uint32_t *pattern = malloc(bytes);
    void *params[] = {&dst, &src, &sum};
    char subject[96];

    for (size_t i = 0; i < bytes / 4 && pattern != NULL; i++) {
        pattern[i] = (uint32_t)(i * 2654435761u);
    }
    MUST(cuMemcpyHtoD(src, pattern, bytes));
    MUST(cuMemcpyHtoD(sum, pattern, bytes));
    MUST(cuMemsetD8(dst, 0, bytes));
    MUST(cuCtxSynchronize());
    kernels_launch("probe_bulk", (unsigned int)(bytes / 4096), NULL, params);
    MUST(cuCtxSynchronize());
    subject_of(subject, sizeof(subject), "bulk copy", tier);
    probe_verdict(same(dst, pattern, bytes, 1), subject, "");
    subject_of(subject, sizeof(subject), "bulk reduction", tier);
    probe_verdict(same(sum, pattern, bytes, 2), subject, "");
    MUST(cuMemsetD8(dst, 0, bytes));
    MUST(cuCtxSynchronize());
    kernels_launch("probe_cp_async", (unsigned int)(bytes / 4096), NULL, params);
    MUST(cuCtxSynchronize());
    subject_of(subject, sizeof(subject), "cp.async", tier);
    probe_verdict(same(dst, pattern, bytes, 1), subject, "");
    free(pattern);
}

void section_instructions(const char *argument)
{
    int major = 0;

    if (probe.simulated) {
        probe_note("unmeasurable", "atomics, reductions, bulk copies",
                   "the simulated GPU has no instructions");
        return;
    }
    MUST(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, probe.device));
    bool host = memory_find_host();
    for (enum tier tier = ON_DEVICE; tier <= (host ? ON_HOST : ON_DEVICE); tier++) {
        run_atomics("probe_atomics", atomics, sizeof(atomics) / sizeof(atomics[0]), tier);
        if (major < 9) {
            probe_note("skipped", "bf16x2, bulk copies, cp.async", "needs compute capability 9.0");
            continue;
        }
        run_atomics("probe_vector_atomics", vectors, sizeof(vectors) / sizeof(vectors[0]), tier);
        run_copies(tier);
    }
}
