/* Copies of pieces in and out, alone and beside a kernel that needs the memory's bandwidth. */
#include <stdio.h>

#include "background.h"
#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define PIECE   (probe.tiny ? MIB : 8 * MIB)
#define BATCH   8 /* pieces */
#define BYTES   (BATCH * PIECE)
#define BATCHES 64

enum way { OUT, IN };

/* What lies on the device and what on the host, by way. */
static struct {
    CUdeviceptr device[2], host[2];
    CUstream streams[2];
} test;

static void submit(enum way way, CUstream stream)
{
    CUdeviceptr to = way == OUT ? test.host[way] : test.device[way];
    CUdeviceptr from = way == OUT ? test.device[way] : test.host[way];

    for (size_t i = 0; i < BATCH; i++) {
        MUST(cuMemcpyDtoDAsync(to + i * PIECE, from + i * PIECE, PIECE, stream));
    }
}

static void submit_out(void)
{
    submit(OUT, test.streams[OUT]);
}

static void submit_in(void)
{
    submit(IN, test.streams[IN]);
}

static void submit_in_turn(void)
{
    submit(OUT, test.streams[OUT]);
    submit(IN, test.streams[OUT]);
}

static void submit_both(void)
{
    submit(OUT, test.streams[OUT]);
    submit(IN, test.streams[IN]);
}

/* Microseconds for all batches. */
static double run(void (*batch)(void))
{
    double begin = probe_now();

    for (size_t i = 0; i < probe_repeat(BATCHES); i++) {
        batch();
    }
    MUST(cuStreamSynchronize(test.streams[OUT]));
    MUST(cuStreamSynchronize(test.streams[IN]));
    return probe_now() - begin;
}

static void show(const char *name, const char *beside, double took)
{

    probe_measure((double)(probe_repeat(BATCHES) * BYTES) / took / 1e3, "GB/s", "%s, %s", name,
                  beside);
}

void section_both_ways(const char *argument)
{
    static const struct {
        const char *name;
        void (*batch)(void);
    } rows[] = {{"out", submit_out},
                {"in", submit_in},
                {"out and in by turns in one stream, each way", submit_in_turn},
                {"out and in at once, each way", submit_both}};

    if (!memory_find_host()) {
        return;
    }
    background_open();
    for (enum way way = OUT; way <= IN; way++) {
        test.device[way] = memory_new(ON_DEVICE, BYTES);
        test.host[way] = memory_new(ON_HOST, BYTES);
        MUST(cuStreamCreate(&test.streams[way], CU_STREAM_NON_BLOCKING));
        kernels_fill(way == OUT ? test.device[way] : test.host[way], BYTES / 4, 5 + way, NULL);
    }
    MUST(cuCtxSynchronize());
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        run(rows[i].batch);
        double alone = run(rows[i].batch);
        show(rows[i].name, "alone", alone);
        background_begin(1.3 * alone);
        double beside = run(rows[i].batch);
        double slower = background_end(beside);
        show(rows[i].name, "beside a kernel", beside);
        probe_measure(slower, "times", "the kernel beside %s, slower", rows[i].name);
    }
    probe_verdict(kernels_differ(test.host[OUT], BYTES / 4, 5) == 0, "content that went out", "");
    probe_verdict(kernels_differ(test.device[IN], BYTES / 4, 6) == 0, "content that came in", "");
}
