#include "background.h"

#include "kernels.h"

#define LAUNCHES_MAX 800 /* fewer than a stream holds */

typedef CUresult (*elapsed_fn)(float *ret_milliseconds, CUevent begin, CUevent end);

static struct {
    CUstream stream;
    CUevent begin, end;
    CUdeviceptr from, to;
    size_t words;
    double alone; /* microseconds of one launch */
    size_t launches;
    double submitting; /* microseconds that the launches took */
} kernel;

static void launch(size_t count)
{
    double begin = probe_now();

    MUST(cuEventRecord(kernel.begin, kernel.stream));
    for (size_t i = 0; i < count; i++) {
        kernels_copy(kernel.to, kernel.from, kernel.words, kernel.stream);
    }
    MUST(cuEventRecord(kernel.end, kernel.stream));
    kernel.launches = count;
    kernel.submitting = probe_now() - begin;
}

/* Waits. Microseconds of the device's clock. */
static double wait(void)
{
    elapsed_fn elapsed = (elapsed_fn)probe_symbol("cuEventElapsedTime");
    float milliseconds = 0;

    MUST(cuStreamSynchronize(kernel.stream));
    if (elapsed != NULL) {
        MUST(elapsed(&milliseconds, kernel.begin, kernel.end));
    }
    return (double)milliseconds * 1e3;
}

void background_open(void)
{
    const size_t bytes = probe.tiny ? 4 * MIB : 512 * MIB;

    kernel.words = bytes / 4;
    MUST(cuStreamCreate(&kernel.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&kernel.begin, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&kernel.end, CU_EVENT_DEFAULT));
    MUST(cuMemAlloc(&kernel.from, bytes));
    MUST(cuMemAlloc(&kernel.to, bytes));
    kernels_fill(kernel.from, kernel.words, 1, kernel.stream);
    for (int turn = 0; turn < 2; turn++) { /* the first warms up */
        launch(probe_repeat(20));
        kernel.alone = wait() / (double)kernel.launches;
    }
}

void background_begin(double microseconds)
{
    double count = kernel.alone > 0 && !probe.simulated ? microseconds / kernel.alone + 1 : 2;

    launch(count < LAUNCHES_MAX ? (size_t)count : LAUNCHES_MAX);
}

double background_end(double microseconds)
{
    double took = wait();
    double beside = took - kernel.submitting; /* of the time that the work ran */

    beside = beside < microseconds ? beside : microseconds;
    double rest = (double)kernel.launches * kernel.alone - (took - beside);
    return beside > 0 && rest > 0 ? beside / rest : 0;
}

void background_close(void)
{
    MUST(cuStreamSynchronize(kernel.stream));
    MUST(cuMemFree(kernel.from));
    MUST(cuMemFree(kernel.to));
    MUST(cuStreamDestroy(kernel.stream));
}
