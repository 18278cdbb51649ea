/* Kernels whose operands lie on the host: how often does an operand cross the link? */
#include <stdio.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define REPEAT 5

static CUdeviceptr sink;
static double link_rate; /* bytes a microsecond that a kernel reads from the host */

static double run(const char *kernel, unsigned int blocks, void **params)
{
    const size_t repeat = probe_repeat(REPEAT);
    double times[REPEAT];

    for (size_t i = 0; i <= repeat; i++) {
        double begin = probe_now();

        kernels_launch(kernel, blocks, NULL, params);
        MUST(cuCtxSynchronize());
        times[i == 0 ? 0 : i - 1] = probe_now() - begin; /* the first warms up */
    }
    return probe_median(times, repeat);
}

/* bytes: of what lies on the host; on_device: microseconds of the same with all on the device,
 * which may hide that much of the link's time. */
static void show(const char *what, double took, double on_device, size_t bytes)
{
    probe_time(what, took, "us");
    if (bytes > 0) {
        const double crossed = link_rate / (double)bytes;

        probe_measure(took * crossed, "times", "%s: crosses the link at most", what);
        probe_measure((took - on_device) * crossed, "times", "%s: crosses the link at least", what);
    }
}

static CUdeviceptr new_chunks(enum tier tier, size_t bytes)
{
    return memory_new_range(&tier, 1, 2 * MIB, (bytes + 2 * MIB - 1) / (2 * MIB));
}

/* A rate to compare with: memory that is read once. */
static void measure_link(void)
{
    const size_t bytes = probe.tiny ? 4 * MIB : 256 * MIB;
    CUdeviceptr address = new_chunks(ON_HOST, bytes);
    size_t quads = bytes / 16;
    void *params[] = {&address, &quads, &sink};

    double took = run("probe_read", 2048, params);
    link_rate = (double)bytes / took;
    probe_time("a kernel reads the host once", link_rate / 1e3, "GB/s");
    memory_delete_range(address, 2 * MIB, bytes / (2 * MIB));
}

/* c = a b of f32, m x k and k x n. Which of them lies on the host? */
static void show_products(const char *name, uint32_t m, uint32_t k, uint32_t n)
{
    const size_t words[] = {(size_t)m * k, (size_t)k * n, (size_t)m * n};
    static const char *const names[] = {"the left operand", "the right operand", "the result"};
    const float sum = 2.0f * (float)k;
    double on_device = 0;
    char subject[96];
    uint32_t bits;

    memcpy(&bits, &sum, sizeof(bits));
    probe_note("figure", name, "%u x %u x %u of f32", m, k, n);
    for (int on_host = -1; on_host < 3; on_host++) {
        CUdeviceptr address[3];
        void *params[] = {&address[0], &address[1], &address[2], &n, &k};

        for (int i = 0; i < 3; i++) {
            address[i] = new_chunks(i == on_host ? ON_HOST : ON_DEVICE, words[i] * 4);
        }
        kernels_fill(address[0], words[0], 0x3F800000, NULL); /* 1 */
        kernels_fill(address[1], words[1], 0x40000000, NULL); /* 2 */
        double took = run("probe_product", m / 64 * (n / 64), params);
        on_device = on_host < 0 ? took : on_device;
        snprintf(subject, sizeof(subject), "%s, %s", name,
                 on_host < 0 ? "all on the device" : names[on_host]);
        show(subject, took, on_device, on_host < 0 ? 0 : words[on_host] * 4);
        if (!probe.simulated) {
            probe_verdict(kernels_differ(address[2], words[2], bits) == 0, subject, "content");
        }
        for (int i = 0; i < 3; i++) {
            memory_delete_range(address[i], 2 * MIB, (words[i] * 4 + 2 * MIB - 1) / (2 * MIB));
        }
    }
}

/* Each by the tier of what it works on; the other operand lies on the device. */
static void show_elementwise(enum tier tier)
{
    static double on_device[6];
    const size_t bytes = probe.tiny ? 4 * MIB : 96 * MIB;
    CUdeviceptr there = new_chunks(tier, bytes), here = new_chunks(ON_DEVICE, bytes);
    size_t words = bytes / 4, short_rows = bytes / (12 << 10), short_quads = (12 << 10) / 16;
    size_t long_rows = bytes / MIB, long_quads = MIB / 16;
    uint32_t one = 1;
    void *fill[] = {&there, &words, &one}, *read[] = {&here, &there, &words};
    void *write[] = {&there, &here, &words};
    void *twice[] = {&there, &short_rows, &short_quads, &sink};
    void *twice_long[] = {&there, &long_rows, &long_quads, &sink};
    const struct {
        const char *what, *kernel;
        void **params;
    } rows[] = {{"written", "spw_fill", fill},
                {"read", "spw_copy", read},
                {"written from the device", "spw_copy", write},
                {"read and written", "spw_add", fill},
                {"rows of 12 KiB read twice", "probe_twice", twice},
                {"rows of 1 MiB read twice", "probe_twice", twice_long}};
    char subject[96];

    probe_note("figure", "of each operand", "%zu MiB lie on the %s", bytes / MIB,
               memory_tier(tier));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(subject, sizeof(subject), "on the %s, %s", memory_tier(tier), rows[i].what);
        double took = run(rows[i].kernel, 1024, rows[i].params);
        on_device[i] = tier == ON_DEVICE ? took : on_device[i];
        show(subject, took, on_device[i], tier == ON_HOST ? bytes : 0);
    }
    /* Filled, copied to the device and back, and added to as often as it ran. */
    uint32_t expected = 1 + (uint32_t)(probe_repeat(REPEAT) + 1);
    snprintf(subject, sizeof(subject), "content on the %s", memory_tier(tier));
    probe_verdict(kernels_differ(there, words, expected) == 0, subject, "");
    memory_delete_range(there, 2 * MIB, bytes / (2 * MIB));
    memory_delete_range(here, 2 * MIB, bytes / (2 * MIB));
}

void section_in_place(const char *argument)
{
    if (!memory_find_host()) {
        return;
    }
    MUST(cuMemAlloc(&sink, 4));
    measure_link();
    show_elementwise(ON_DEVICE);
    show_elementwise(ON_HOST);
    if (probe.tiny) {
        show_products("wide product", 64, 64, 128);
        show_products("deep product", 64, 128, 64);
    } else {
        show_products("wide product", 8192, 768, 3072);
        show_products("deep product", 8192, 3072, 768);
    }
}
